/**
 * The bundle's door, the same file for all hosts: a notebook imports it and calls `render`; a page that holds its own
 * data, and the page of a server, are begun here as soon as this is loaded.
 */
import { browser } from "./browser";
import { render } from "./notebook";
import { page } from "./page";

export { browser, page };
export default { render };

const marked = document.querySelector('meta[name="regard"]')?.getAttribute("content");
if (marked === "browser") void browser();
else if (marked === "page" || document.querySelector('script[type="application/x-regard"]')) void page();
