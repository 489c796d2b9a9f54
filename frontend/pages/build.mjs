// Bundles the pages into what the hub's service serves: one script and one style, in the wheel and in no repository.
import { build } from "esbuild";

const outdir = process.argv[2] ?? "../../bulletin_spawner/service/static/built";

await build({
  entryPoints: { pages: "src/main.tsx" },
  outdir,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome111", "firefox115", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "linked",
  logLevel: "warning",
});
