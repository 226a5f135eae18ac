import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/*.bundle.js", "**/.venv/**", "build/**"] },
  js.configs.recommended,
  {
    files: ["charts/**/*.js", "ui/**/*.js", "views/**/*.js", "web/**/*.js"],
    languageOptions: { globals: { ...globals.browser, COLOURS: "readonly" } }, // COLOURS: charts/canvas/module.py
    rules: { eqeqeq: "error", "no-shadow": "error", "no-var": "error", "prefer-const": "error" },
  },
  { files: ["web/source/worker.js", "web/source/service_worker.js"], languageOptions: { globals: globals.worker } },
  { files: ["**/build.js", "tests/**/*.js"], languageOptions: { globals: globals.node } },
];
