// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/bus_error.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace mlir_shard {
namespace {

// A signal handler gets no custom arguments, and must not allocate memory.
constexpr std::size_t sharedPathSize = 256;
std::array<char, sharedPathSize> sharedFolder;
std::array<char, sharedPathSize> sharedPrefix;

void writeError(const char *text) {
  for (std::size_t left = std::strlen(text); left > 0;) {
    const ssize_t written = write(STDERR_FILENO, text, left);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return;
    text += written;
    left -= static_cast<std::size_t>(written);
  }
}

bool sharedMemoryIsFull() {
  struct statvfs state = {};
  return statvfs(sharedFolder.data(), &state) == 0 && state.f_bavail == 0;
}

// Parses /proc/self/maps, in which the path in a line begins at the first `/`, and removes the files with the prefix.
class MappedSharedFiles {
public:
  void take(char character) {
    if (character == '\n') {
      path[length] = '\0';
      const std::size_t wanted = std::strlen(sharedPrefix.data());
      if (length < sharedPathSize - 1 && std::strncmp(path.data(), sharedPrefix.data(), wanted) == 0)
        unlink(path.data());
      length = 0;
    } else if ((length > 0 || character == '/') && length < sharedPathSize - 1) {
      path[length++] = character;
    }
  }

private:
  std::array<char, sharedPathSize> path;
  std::size_t length = 0;
};

void onBusError(int) {
  const int error = errno;
  if (sharedMemoryIsFull()) {
    writeError("error: ");
    writeError(sharedFolder.data());
    writeError(" is full, and the shared memory of MPI is there\n");
  }
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  MappedSharedFiles files;
  std::array<char, 4096> text;
  for (ssize_t count = 0; maps >= 0 && (count = read(maps, text.data(), text.size())) != 0;) {
    if (count < 0 && errno != EINTR)
      break;
    for (ssize_t index = 0; index < count; ++index)
      files.take(text[static_cast<std::size_t>(index)]);
  }
  if (maps >= 0)
    close(maps);
  // The access is retried, and the process ends as it would have without the handler.
  errno = error;
}

void keepSharedPath(std::array<char, sharedPathSize> &to, const std::string &from) {
  to.fill('\0');
  std::memcpy(to.data(), from.data(), from.size() < sharedPathSize - 1 ? from.size() : sharedPathSize - 1);
}

} // namespace

void removeMappedAtBusError(const std::string &folder, const std::string &prefix) {
  keepSharedPath(sharedFolder, folder);
  keepSharedPath(sharedPrefix, prefix);
  struct sigaction action = {};
  action.sa_handler = onBusError;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

} // namespace mlir_shard
