/** One file for all hosts: the server, the notebook and the single page load the same bundle. */
import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";
import { licences } from "./licences";

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false }), licences("licences.txt")],
  base: "./",
  build: {
    outDir: "../src/regard/views/explorer/built",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: () => true,
    // Not Vite's library mode: that leaves the spaces in and does not say that this is production.
    rollupOptions: {
      input: "src/entry/regard.ts",
      preserveEntrySignatures: "strict",
      output: { format: "es", entryFileNames: "regard.js", inlineDynamicImports: true },
    },
  },
  worker: { format: "es" },
  test: { environment: "happy-dom", include: ["test/**/*.test.ts", "test/**/*.test.tsx"] },
});
