// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The switch of versions: leads to the same page of another version, or to its first page if it has no such page.
// `versions.js` beside the folders of versions has set `siteVersions`, which needs no server.

(() => {
  const place = document.querySelector(".versions");
  const versions = window.siteVersions || [];
  if (!place || !versions.length) return;
  const {version, page, root} = place.dataset;
  const select = document.createElement("select");
  select.setAttribute("aria-label", "Version of the documentation");
  for (const {name} of versions) select.add(new Option(name, name, name === version, name === version));
  select.addEventListener("change", () => {
    const chosen = versions.find((one) => one.name === select.value);
    const target = chosen.pages.includes(page) ? page : "index.html";
    window.location.href = `${root}${chosen.name}/${target}`;
  });
  place.append("Version ", select);
})();
