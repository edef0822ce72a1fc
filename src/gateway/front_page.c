/* SPDX-License-Identifier: Apache-2.0 */
/* The page at /: what this is, and after a one-use link the list of sessions. */
#include <string.h>

#include "gateway/front_internal.h"
#include "http/chars.h"

static const char html[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>ClawDen</title>\n"
    "<link rel=\"stylesheet\" href=\"/app.css\">\n"
    "<script src=\"/app.js\" defer></script>\n"
    "<main>\n"
    "<h1>ClawDen</h1>\n"
    "<p>A gateway for agents: commands and files in boxes, every call admitted, bounded and\n"
    "recorded. Agents speak MCP at <code>/mcp</code> or HTTP at <code>/v1</code>, with a token\n"
    "of <code>clawden token create</code>.\n"
    "<p id=\"say\">Open the link that the gateway printed to look at its sessions.\n"
    "<table id=\"sessions\" hidden><thead><tr><th>Session<th>Agent<th>Calls<th>Last used\n"
    "<tbody></table>\n"
    "</main>\n"
    "</html>\n";

/* The code stands behind '#', which browsers send to nobody, and is gone from the address before
 * anything is asked. */
static const char script[] =
    "'use strict';\n"
    "const say = (text) => { document.getElementById('say').textContent = text; };\n"
    "\n"
    "async function logIn() {\n"
    "  const code = new URLSearchParams(location.hash.slice(1)).get('code');\n"
    "  if (!code) return;\n"
    "  history.replaceState(null, '', location.pathname);\n"
    "  const r = await fetch('/v1/login', {\n"
    "    method: 'POST',\n"
    "    headers: {'Content-Type': 'application/json'},\n"
    "    body: JSON.stringify({code}),\n"
    "  });\n"
    "  if (!r.ok) throw new Error('This link has been used, or is too old.');\n"
    "}\n"
    "\n"
    "function show(sessions) {\n"
    "  const table = document.getElementById('sessions');\n"
    "  for (const s of sessions) {\n"
    "    const row = table.tBodies[0].insertRow();\n"
    "    const used = s.used ? new Date(s.used).toLocaleString() : '';\n"
    "    for (const text of [s.session, s.agent, s.calls, used])\n"
    "      row.insertCell().textContent = text ?? '';\n"
    "  }\n"
    "  table.hidden = sessions.length === 0;\n"
    "  say(sessions.length ? 'Sessions:' : 'There are no sessions yet.');\n"
    "}\n"
    "\n"
    "async function main() {\n"
    "  await logIn();\n"
    "  const r = await fetch('/v1/sessions');\n"
    "  if (r.ok) show((await r.json()).sessions);\n"
    "}\n"
    "\n"
    "main().catch((e) => say(e.message));\n";

static const char style[] = "body{font:16px/1.5 system-ui,sans-serif;margin:3rem auto;"
                            "max-width:44rem;padding:0 1rem}\n"
                            "td,th{text-align:left;padding:.2rem 1rem .2rem 0}\n";

#define POLICY                                                                               \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri " \
    "'none'; form-action 'none'; frame-ancestors 'none'"

static const struct file {
    const char *path, *type, *text;
    size_t len;
} files[] = {
    {"/", "text/html; charset=utf-8", html, sizeof(html) - 1},
    {"/app.js", "text/javascript; charset=utf-8", script, sizeof(script) - 1},
    {"/app.css", "text/css; charset=utf-8", style, sizeof(style) - 1},
};

void serve_page(struct request *r)
{
    for (size_t i = 0; i < COUNT(files); i++) {
        const struct http_field fields[] = {{"Content-Type", files[i].type},
                                            {"Content-Security-Policy", POLICY},
                                            {"Referrer-Policy", "no-referrer"},
                                            {"Cross-Origin-Opener-Policy", "same-origin"}};

        if (strcmp(files[i].path, r->route->path) == 0) {
            request_reply(r, 200, fields, COUNT(fields), files[i].text, files[i].len);
            return;
        }
    }
    request_fail(r, 404, NULL);
}
