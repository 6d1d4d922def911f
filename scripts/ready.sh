# Sourced by ./demo and ./check, in the project's folder: the right Node.js, and node_modules in step with the lock.
# What npm says goes to stderr; stdout belongs to the caller.

if ! command -v node >/dev/null 2>&1; then
  echo "Node.js is not installed: version 20.19 or newer is needed." >&2
  exit 1
fi
if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
  echo "Node.js $(node --version) is too old: version 20.19 or newer is needed." >&2
  exit 1
fi
# A home that cannot be written must not stop npm.
if [ -z "${npm_config_cache:-}" ] && ! { [ -n "${HOME:-}" ] && mkdir -p "$HOME/.npm" 2>/dev/null && [ -w "$HOME/.npm" ]; }; then
  npm_config_cache="${TMPDIR:-/tmp}/rowlock-npm-$(id -u)"
  export npm_config_cache
fi
lock_sum=$(node -e 'process.stdout.write(require("node:crypto").createHash("sha256").update(require("node:fs").readFileSync("package-lock.json")).digest("hex"))')
stamp=node_modules/.rowlock-lock
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$lock_sum" ]; then
  echo "Installing packages (npm ci) …" >&2
  npm ci --no-audit --no-fund --ignore-scripts >&2
  printf %s "$lock_sum" >"$stamp"
fi
