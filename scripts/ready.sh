# Sourced by ./check, in the project's folder: the right Node.js, and node_modules in step with the lock.
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
if ! node scripts/in-step.mjs; then
  echo "Installing packages (npm ci) …" >&2
  npm ci --include=dev --include=optional --no-audit --no-fund --ignore-scripts >&2
fi
