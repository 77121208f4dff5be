# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the settings of editors in docs/editors.md, with the editors that the machine has.

If the environment variable MLIR_SHARD_REQUIRE lists `emacs` or `neovim`, tests fail without the editor; otherwise they
are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from documents.blocks import ROOT
from hang_guard import SECONDS

PROGRAM = """\
sdy.mesh @mesh = <["x"=2]>

func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %b = stablehlo.tanh %a : tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}
"""
NEOVIM = """
local most = SECONDS * 1000
local function say(...) io.stdout:write(table.concat({...}, " ") .. "\\n") end
local function asked(method)
  local at = vim.lsp.util.make_position_params(0, "utf-16")
  for _, one in pairs(vim.lsp.buf_request_sync(0, method, at, most) or {}) do return vim.inspect(one.result) end
  return ""
end
local hover = ""
local function hovers() hover = asked("textDocument/hover") return hover:match("sharded as") end
local function has_hints() return #vim.lsp.inlay_hint.get({bufnr = 0}) > 0 end
local function has_errors() return #vim.diagnostic.get(0) > 0 end
vim.api.nvim_win_set_cursor(0, {4, 3})
vim.wait(most, function() return #vim.lsp.get_clients({bufnr = 0}) > 0 end, 50)
vim.wait(most, hovers, 100)
say("hover:", hover)
vim.wait(most, has_hints, 50)
for _, one in ipairs(vim.lsp.inlay_hint.get({bufnr = 0})) do say("hint:", vim.inspect(one.inlay_hint)) end
for _, key in ipairs({"K", "grr", "gO"}) do say("key:", key, vim.fn.maparg(key, "n") ~= "" and "is set" or "is not") end
vim.cmd.edit("wrong.mlir")
vim.wait(most, has_errors, 50)
for _, one in ipairs(vim.diagnostic.get(0)) do say("error:", one.lnum + 1, one.message) end
vim.cmd("qa!")
"""
EMACS = r"""
(defun wait-for (what)
  (let ((end (+ (float-time) SECONDS)) found)
    (while (and (not (setq found (funcall what))) (< (float-time) end)) (accept-process-output nil 0.1))
    found))
(defun hover ()
  (let* ((at (eglot--TextDocumentPositionParams))
         (found (ignore-errors (jsonrpc-request (eglot-current-server) :textDocument/hover at))))
    (and found (string-match-p "sharded as" (format "%S" found)) found)))
(defun opened (file)
  (find-file file)
  ;; What a command does at its end in a session with a user.
  (run-hooks 'post-command-hook)
  (wait-for #'eglot-current-server))
(opened "program.mlir")
(goto-char (point-min))
(search-forward "%b")
(backward-char)
(message "hover: %S" (wait-for #'hover))
(message "key: %s %s" (key-binding (kbd "M-.")) (key-binding (kbd "M-?")))
(opened "wrong.mlir")
(flymake-mode 1)
(flymake-start)
(message "error: %s" (wait-for (lambda () (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))))
(kill-emacs 0)
"""
# The mode is defined as in LLVM.
MLIR_MODE = """
(define-derived-mode mlir-mode prog-mode "MLIR")
(add-to-list 'auto-mode-alist (cons "\\\\.mlir\\\\'" 'mlir-mode))
(provide 'mlir-mode)
"""


def settings(language: str) -> str:
    """Returns the settings in the documentation."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / "editors.md").read_text(), re.M | re.S)
    return str(found)


def absent(name: str, what: str) -> NoReturn:
    if name in os.environ.get("MLIR_SHARD_REQUIRE", "").split(","):
        pytest.fail(f"MLIR_SHARD_REQUIRE lists {name}, and there is no {what}", pytrace=False)
    pytest.skip(f"missing: {what}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with programs, and with `shard-lsp` in `bin`."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "shard-lsp"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mlir_shard.tools.shard_lsp "$@"\n')
    command.chmod(0o755)
    (tmp_path / "program.mlir").write_text(PROGRAM)
    (tmp_path / "wrong.mlir").write_text(PROGRAM.replace('[{"x"}', '[{"y"}'))
    return tmp_path


def printed(folder: Path, *command: str) -> str:
    environment = {**os.environ, "HOME": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    ended = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=-1, stderr=-2, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def test_neovim(folder: Path) -> None:
    editor = shutil.which("nvim")
    version = re.search(r"v0\.(\d+)", printed(folder, editor, "--version")) if editor else None
    if editor is None or version is None or int(version[1]) < 11:
        absent("neovim", "Neovim of version 0.11 or later")
    (folder / "init.lua").write_text(settings("lua"))
    (folder / "test.lua").write_text(NEOVIM.replace("SECONDS", f"{SECONDS:.0f}"))
    options = ("--headless", "--clean", "-u", "init.lua", "-c", "luafile test.lua", "program.mlir")
    found = printed(folder, editor, *options)
    assert 'sharded as <@mesh, [{"x"}, {}]>' in found
    assert re.search(r'hint:.*\[\{"x"\}, \{\}\]', found, re.S)
    assert re.findall(r"key: \S+ (.*)", found) == ["is set"] * 3
    assert re.search(r'error: 3 .*unknown axis "y"', found)


def test_emacs(folder: Path) -> None:
    editor = shutil.which("emacs")
    # For versions without Eglot, Debian has a package, whose folder -Q does not search.
    paths = [f"--directory={path}" for path in Path("/usr/share/emacs/site-lisp/elpa-src").glob("eglot*")]
    start = (str(editor), "-Q", "--batch", f"--directory={folder}", *paths)
    if editor is None or "no eglot" in printed(
        folder, *start, "--eval", '(message "%s" (or (locate-library "eglot") "no eglot"))'
    ):
        absent("emacs", "Emacs with Eglot (install emacs-nox and elpa-eglot)")
    (folder / "mlir-mode.el").write_text(MLIR_MODE)
    (folder / "init.el").write_text(settings("elisp"))
    (folder / "test.el").write_text(EMACS.replace("SECONDS", f"{SECONDS:.0f}"))
    found = printed(folder, *start, "--load=init.el", "--load=test.el")
    assert r"sharded as <@mesh, [{\"x\"}, {}]>" in found
    assert "key: xref-find-definitions xref-find-references" in found
    assert re.search(r'error: .*unknown axis "y"', found)


def test_the_settings_name_the_command() -> None:
    assert 'cmd = { "shard-lsp" }' in settings("lua")
    assert '(mlir-mode . ("shard-lsp"))' in settings("elisp")
    for language in ("lua", "elisp"):
        text = re.sub(r'"[^"]*"', "", settings(language))
        assert all(text.count(opening) == text.count(closing) for opening, closing in ("()", "{}"))
