// Opens the page without a network. The constant SHELL, in front of this file, says which files it needs, and their version:
// another version is another cache. Models are not among them: files.js keeps each as it is loaded.

/* global SHELL, clients, skipWaiting */

const NAME = `glassformer-page-${SHELL.version}`;

addEventListener("install", (event) => {
  // The browser's own cache may hold an older version, so the server is asked; what has just been loaded is not sent again.
  const fresh = SHELL.files.map((file) => new Request(file, { cache: "no-cache" }));
  event.waitUntil(
    caches
      .open(NAME)
      .then((cache) => cache.addAll(fresh))
      .then(() => skipWaiting()),
  );
});

addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("glassformer-page-") && name !== NAME;
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))))
      .then(() => clients.claim()),
  );
});

addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  // Whatever else lies beside or below the page, a blog or another page, is the server's.
  const file = ["./", ...SHELL.files].find((name) => new URL(name, location).pathname === pathname);
  if (request.method !== "GET" || origin !== location.origin || !file) return;
  event.respondWith(
    caches
      .open(NAME)
      .then((cache) => cache.match(file === "./" ? "index.html" : file))
      .then((kept) => kept ?? fetch(request)),
  );
});
