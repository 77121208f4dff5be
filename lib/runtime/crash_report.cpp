// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/crash_report.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

namespace mlir_shard {
namespace {

// A signal handler gets no custom arguments, and must not allocate memory: its output is in static memory.
template <std::size_t size> struct StaticText {
  std::array<char, size> text;
  std::size_t length;

  void set(const std::string &from) {
    length = from.size() < size - 1 ? from.size() : size - 1;
    std::memcpy(text.data(), from.data(), length);
    text[length] = '\0';
  }
};

constexpr std::size_t pathSize = 4096;
StaticText<64> tool;
StaticText<1024> place;
StaticText<1024> work;
std::array<StaticText<pathSize>, 4> folders;
int exitStatus = 0;

// The stack of the handler, which is used if the stack has overflowed.
alignas(16) std::array<char, std::size_t{1} << 16> handlerStack;

struct Named {
  int number;
  const char *name;
};
constexpr std::array<Named, 5> fatalSignals = {{{SIGSEGV, "SIGSEGV (segmentation fault)"},
                                                {SIGBUS, "SIGBUS (bus error)"},
                                                {SIGFPE, "SIGFPE (arithmetic exception)"},
                                                {SIGILL, "SIGILL (illegal instruction)"},
                                                {SIGABRT, "SIGABRT (abort)"}}};

void say(const char *text, std::size_t length) {
  while (length > 0) {
    const ssize_t written = write(STDERR_FILENO, text, length);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return;
    text += written;
    length -= static_cast<std::size_t>(written);
  }
}

void say(const char *text) { say(text, std::strlen(text)); }

template <std::size_t size> void say(const StaticText<size> &text) { say(text.text.data(), text.length); }

void removeFolder(const char *folder) {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/rm", "rm", "-rf", "--", folder, static_cast<char *>(nullptr));
    _exit(1);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

void onFatalSignal(int number) {
  say(place.length > 0 ? place.text.data() : tool.text.data());
  say(": error: MLIR was ended by ");
  for (const Named &one : fatalSignals)
    if (one.number == number)
      say(one.name);
  if (work.length > 0) {
    say(" ");
    say(work);
  }
  say("\n");
  for (const StaticText<pathSize> &folder : folders)
    if (folder.length > 0)
      removeFolder(folder.text.data());
  _exit(exitStatus);
}

} // namespace

void reportCrashes(const std::string &name, int status) {
  tool.set(name);
  exitStatus = status;
  stack_t stack = {};
  stack.ss_sp = handlerStack.data();
  stack.ss_size = handlerStack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = onFatalSignal;
  // A signal in the handler ends the process as it would have without the handler.
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const Named &one : fatalSignals)
    sigaction(one.number, &action, nullptr);
}

bool reportsCrashes() { return tool.length > 0; }

void setAtWork(const std::string &where, const std::string &what) {
  place.set(where);
  work.set(what);
}

void removeAtCrash(const std::string &folder) {
  if (folder.size() >= pathSize)
    return;
  for (StaticText<pathSize> &free : folders)
    if (free.length == 0) {
      free.set(folder);
      return;
    }
}

void keepAtCrash(const std::string &folder) {
  for (StaticText<pathSize> &one : folders)
    if (folder == one.text.data())
      one.set("");
}

} // namespace mlir_shard
