/** The page of `regard serve`: a server behind it, and the address bar of the browser. */
import type { Address } from "../shell/host";
import { mount } from "../shell/mount";
import { overHttp } from "../hosts/http";

/** The browser's address bar: what stands behind its #. */
export const addressBar: Address = {
  read: () => globalThis.location.hash,
  write: (hash, push) => globalThis.history[push ? "pushState" : "replaceState"](null, "", hash),
  listen: (heard, signal) => {
    globalThis.addEventListener("popstate", heard, { signal });
    globalThis.addEventListener("hashchange", heard, { signal });
  },
};

/** Starts the studio in the page; gives a way to end it. */
export function browser(): () => void {
  const root = document.getElementById("regard") ?? document.body.appendChild(document.createElement("div"));
  root.id = "regard";
  return mount(root, { source: null, server: overHttp(), address: addressBar });
}
