// vite.config: the page as four files of fixed names, which the command's binary takes in.
import { defineConfig } from "vite";

export default defineConfig({
  // Addresses are relative, so that the page can be served below any path.
  base: "./",
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: {
      output: {
        entryFileNames: "page.js",
        assetFileNames: "page[extname]",
        inlineDynamicImports: true,
      },
    },
  },
});
