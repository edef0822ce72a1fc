// SPDX-License-Identifier: Apache-2.0
// One conversation of a real MCP client with a server; what it saw goes to stdout as one JSON object.
//   node mcp_client.cjs MODULES sdk1|sdk2|sdk2-auto|sdk2-pin COMMAND|http://... [toys|gateway|approve]
// TOKEN, if set, goes with each request over HTTP; ARGS are words of COMMAND; MARKER is in the command line of what is cancelled;
// ACTION is what its user answers when he is asked.
const { createRequire } = require('node:module');
const [modules, kind, target, what = 'toys'] = process.argv.slice(2);
const load = createRequire(modules + '/x.js');

function parts() {
    if (kind === 'sdk1') {
        return {
            Client: load('@modelcontextprotocol/sdk/client/index.js').Client,
            Stdio: load('@modelcontextprotocol/sdk/client/stdio.js').StdioClientTransport,
            Http: load('@modelcontextprotocol/sdk/client/streamableHttp.js').StreamableHTTPClientTransport
        };
    }
    const all = load('@modelcontextprotocol/client');
    return { Client: all.Client, Stdio: load('@modelcontextprotocol/client/stdio').StdioClientTransport, Http: all.StreamableHTTPClientTransport };
}

async function refusal(promise) {
    try {
        return { value: await promise };
    } catch (e) {
        return { code: e.code, message: String(e.message).slice(0, 200) };
    }
}

function open(Stdio, Http) {
    if (!target.startsWith('http')) return new Stdio({ command: target, args: (process.env.ARGS || '').split(' ').filter(Boolean), env: process.env, stderr: 'pipe' });
    const headers = process.env.TOKEN ? { Authorization: `Bearer ${process.env.TOKEN}` } : {};
    return new Http(new URL(target), { requestInit: { headers } });
}

async function main() {
    const { Client, Stdio, Http } = parts();
    const saw = { kind, errors: [] };
    const options = { capabilities: { elicitation: { form: {} } } };
    if (kind === 'sdk2-auto') options.versionNegotiation = { mode: 'auto' };
    if (kind === 'sdk2-pin') options.versionNegotiation = { mode: { pin: '2026-07-28' } };
    const client = new Client({ name: 'test', version: '1' }, options);
    client.onerror = e => saw.errors.push(String(e.message || e).slice(0, 200));
    if (kind.startsWith('sdk2-'))
        client.setRequestHandler('elicitation/create', async r => {
            saw.asked = r.params.message;
            const action = process.env.ACTION || 'accept';
            return action === 'accept' ? { action, content: what === 'approve' ? { allow: true } : { yes: true } } : { action };
        });
    const transport = open(Stdio, Http);
    saw.stderr = '';
    if (transport.stderr) transport.stderr.on('data', d => (saw.stderr += d));
    if (!transport.setProtocolVersion) transport.setProtocolVersion = v => (saw.version = v); // 1.x tells nobody else
    await client.connect(transport);
    saw.version = client.getNegotiatedProtocolVersion ? client.getNegotiatedProtocolVersion() : saw.version || transport.protocolVersion;
    saw.server = client.getServerVersion();
    saw.instructions = client.getInstructions();
    saw.tools = (await client.listTools()).tools; // from here on the client holds results against their schemas
    const call = (name, args, opts) =>
        kind === 'sdk1' ? client.callTool({ name, arguments: args }, undefined, opts) : client.callTool({ name, arguments: args }, opts);
    await { toys, gateway, approve }[what](saw, call);
    if (kind === 'sdk1' || saw.version !== '2026-07-28') saw.ping = await refusal(client.ping());
    await client.close();
    await new Promise(done => process.stdout.write(JSON.stringify(saw), done)); // an exit would cut it
}

async function toys(saw, call) {
    saw.echo = await call('echo', { text: 'grüß ☃', times: 2, place: { region: 'eu ☃', floor: -7, open: true } });
    saw.bad = await call('echo', { text: 5 });
    saw.unknown = await refusal(call('nope', {}));
    const progress = [];
    saw.count = await call('count', { to: 3, pause_ms: 20 }, { onprogress: p => progress.push(p.progress) });
    saw.progress = progress;
    saw.ask = await refusal(call('ask', { what: 'remove it' }));
    saw.many = (await Promise.all([...Array(50).keys()].map(i => call('echo', { text: `n${i}` })))).map(r => r.content[0].text);
    if (!target.startsWith('http')) {
        const stop = new AbortController();
        const long = refusal(call('count', { to: 1000, pause_ms: 20 }, { signal: stop.signal }));
        setTimeout(() => stop.abort('enough'), 100);
        saw.stopped = await long;
        saw.after = await call('echo', { text: 'still here' });
        await new Promise(r => setTimeout(r, 100));
    }
}

async function gateway(saw, call) {
    saw.results = {};
    const does = async (name, tool, args, opts) => (saw.results[name] = await call(tool, args, opts));
    await does('write', 'write', { path: 'src/a.txt', content: 'one\ntwo grüß ☃\n' });
    await does('edit', 'edit', { path: 'src/a.txt', edits: [{ oldText: 'one', newText: '1' }] });
    await does('exec', 'exec', { command: 'cat src/a.txt; echo oops >&2; exit 3' });
    await does('grep', 'grep', { pattern: 'gr.*☃' });
    await does('read', 'read', { path: 'src/a.txt' });
    await does('ls', 'ls', {});
    await does('find', 'find', { pattern: '*.txt' });
    await does('patch', 'apply_patch', { patch: '*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch\n' });
    await does('png', 'exec', { argv: ['sh', '-c', "printf 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' | base64 -d >dot.png"] });
    await does('image', 'read', { path: 'dot.png' });
    await does('signaled', 'exec', { command: 'kill -SEGV $$' });
    await does('limit', 'exec', { command: 'sleep 60', timeout: 0.2 });
    await does('long', 'exec', { command: 'seq 100000' });
    await does('failed', 'exec', { argv: ['/no/such/program'] });
    await does('background', 'exec', { command: 'read x; echo got $x; sleep 300', background: true });
    const process_ = saw.results.background.structuredContent.process;
    await does('list', 'process', { action: 'list' });
    await does('fed', 'process', { action: 'write', process: process_, data: 'it\n' });
    await does('poll', 'process', { action: 'poll', process: process_, wait: 0.5 });
    await does('log', 'process', { action: 'log', process: process_ });
    await does('killed', 'process', { action: 'kill', process: process_ });
    await does('over', 'process', { action: 'poll', process: process_, wait: 10 });
    await does('status', 'session_status', {});
    await does('missing', 'read', { path: 'nothing' });
    await does('outside', 'read', { path: '../x' });
    await does('bad', 'read', { pth: 1 });
    saw.unknown = await refusal(call('nope', {}));
    const heard = [];
    await does('slow', 'exec', { command: 'for i in 1 2 3; do echo step $i; sleep 0.1; done' }, { onprogress: p => heard.push([p.progress, p.message]) });
    saw.heard = heard;
    saw.many = (await Promise.all([...Array(20).keys()].map(i => call('exec', { argv: ['echo', `n${i}`] })))).map(r => r.structuredContent.stdout);
    const stop = new AbortController();
    const long = refusal(call('exec', { argv: ['sh', '-c', 'touch begun; sleep 300; :', process.env.MARKER] }, { signal: stop.signal }));
    for (let n = 0; n < 100; n++) {
        await new Promise(r => setTimeout(r, 50));
        if ((await call('find', { pattern: 'begun' })).structuredContent.paths.length) break;
    }
    stop.abort('enough');
    saw.stopped = await long;
    await does('after', 'exec', { command: 'echo still here' });
}

async function approve(saw, call) {
    saw.write = await call('write', { path: 'asked.txt', content: 'yes' });
}

main().then(() => process.exit(0), e => {
    process.stderr.write(String(e.stack || e) + '\n');
    process.exit(1);
});
