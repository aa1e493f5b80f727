/** A trace as one HTML file. */
export const page = {
  "page.empty": "This page has no trace. Write it again with trace.page(…), or open a trace file with “regard serve”.",
  "page.cut": "This page is incomplete: it was cut off while it was copied or saved. Get the file again.",
  "page.newer": "This page was written by a newer version of regard. Write it again, or get the whole file.",
  "page.failed": "This page could not be opened: {why}. Open it in a recent browser, or write it again.",
  "page.exact": "This page holds the model's own numbers ({precision}); nothing was rounded.",
  "page.rounded": "This page holds q and k as {precision}. The largest error of any weight is {error}, measured on all rows.",
  "page.sampled": "This page holds q and k as {precision}. The largest error of any weight is {error}, measured on {rows} rows of every head.",
};
