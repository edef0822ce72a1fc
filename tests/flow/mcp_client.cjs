// SPDX-License-Identifier: Apache-2.0
// One conversation of a real MCP client with a server; what it saw goes to stdout as one JSON object.
//   node mcp_client.cjs MODULES sdk1|sdk2|sdk2-auto|sdk2-pin COMMAND|http://...
const { createRequire } = require('node:module');
const [modules, kind, target] = process.argv.slice(2);
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
            return { action: 'accept', content: { yes: true } };
        });
    const transport = target.startsWith('http') ? new Http(new URL(target)) : new Stdio({ command: target, stderr: 'pipe' });
    saw.stderr = '';
    if (transport.stderr) transport.stderr.on('data', d => (saw.stderr += d));
    if (!transport.setProtocolVersion) transport.setProtocolVersion = v => (saw.version = v); // 1.x tells nobody else
    await client.connect(transport);
    saw.version = client.getNegotiatedProtocolVersion ? client.getNegotiatedProtocolVersion() : saw.version || transport.protocolVersion;
    saw.server = client.getServerVersion();
    saw.instructions = client.getInstructions();
    saw.tools = (await client.listTools()).tools;
    const call = (name, args, opts) =>
        kind === 'sdk1' ? client.callTool({ name, arguments: args }, undefined, opts) : client.callTool({ name, arguments: args }, opts);
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
    if (kind === 'sdk1' || saw.version !== '2026-07-28') saw.ping = await refusal(client.ping());
    await client.close();
    process.stdout.write(JSON.stringify(saw));
}

main().then(() => process.exit(0), e => {
    process.stderr.write(String(e.stack || e) + '\n');
    process.exit(1);
});
