// A server of tools that the user named, by streamable HTTP of the Model Context Protocol. The browser lets the page ask
// only the origins that sluice was started with (--mcp). What a server says is text, of a bounded length.

import { events } from './api.js';

const version = '2025-06-18';
const spoken = [version, '2025-03-26'];
const most = { tools: 64, pages: 8, schema: 32_000, about: 4000, text: 100_000, answer: 4 << 20 };
const patience = { connect: 15_000, call: 120_000 }; // milliseconds

// origins are those that the page may ask.
export const origins = () => document.querySelector('meta[name=mcp]').content.split(' ').filter(Boolean);

// checked is the address that a user wrote; it throws what to tell the user.
export function checked(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new Error(`“${text}” is no address: write it whole, with its path.`);
  }
  const { origin } = url;
  if (!origins().includes(origin)) throw new Error(`The browser may not ask ${origin} from here: start sluice with --mcp ${origin}.`);
  url.hash = '';
  return url.href;
}

// Server is one of them. tools: {name, title, description, schema}, once it is connected.
export class Server {
  constructor(address) {
    this.address = address;
    this.forget();
  }

  forget() {
    this.name = '';
    this.tools = [];
    this.more = false; // it has more tools than are taken
    this.session = '';
    this.version = '';
    this.id = 0;
  }

  // connect begins a session and lists the tools.
  async connect() {
    this.forget();
    const signal = AbortSignal.timeout(patience.connect);
    const clientInfo = { name: 'sluice', version: '1' };
    const got = await this.ask('initialize', { protocolVersion: version, capabilities: {}, clientInfo }, signal);
    this.version = short(got.protocolVersion);
    if (!spoken.includes(this.version)) throw new Error(`It speaks “${this.version}” of the protocol, this page ${version}.`);
    this.name = short(got.serverInfo?.name);
    await this.post({ method: 'notifications/initialized' }, signal);
    for (let page = 0, cursor; page < most.pages; page++) {
      const list = await this.ask('tools/list', cursor === undefined ? {} : { cursor }, signal);
      for (const tool of Array.isArray(list.tools) ? list.tools : []) this.offer(tool);
      cursor = list.nextCursor;
      if (!cursor || this.more) return;
    }
    this.more = true;
  }

  // offer takes a tool that models can be told of.
  offer(tool) {
    const { name, description = '', inputSchema: schema } = tool;
    if (typeof name !== 'string' || !name || name.length > 128 || schema?.type !== 'object') return;
    if (this.tools.length === most.tools || JSON.stringify(schema).length > most.schema) this.more = true;
    else this.tools.push({ name, description: String(description).slice(0, most.about), schema });
  }

  // call runs a tool and returns what it gave as text. A server that has forgotten the session gets another one.
  async call(name, args, signal) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(patience.call)]);
    const ask = () => this.ask('tools/call', { name, arguments: args }, limit);
    let got;
    try {
      got = await ask();
    } catch (e) {
      if (e.status !== 404 || !this.session) throw e;
      await this.connect();
      got = await ask();
    }
    return said(got);
  }

  // ask sends a request and waits for its answer.
  async ask(method, params, signal) {
    const id = ++this.id;
    try {
      const response = await this.post({ id, method, params }, signal);
      const session = response.headers.get('Mcp-Session-Id');
      if (method === 'initialize' && session) this.session = session;
      const answer = await answerTo(id, response);
      if (!answer) throw new Error('It sent no answer.');
      if (answer.error) throw new Error(short(answer.error.message) || 'It answers with an error that says nothing.');
      if (typeof answer.result !== 'object' || answer.result === null) throw new Error('Its answer has no result.');
      return answer.result;
    } catch (e) {
      if (signal.aborted && method === 'tools/call') this.cancel(id);
      if (signal.reason?.name === 'TimeoutError') throw new Error('It took too long.');
      throw e;
    }
  }

  cancel(id) {
    this.post({ method: 'notifications/cancelled', params: { requestId: id } }, AbortSignal.timeout(patience.connect)).catch(() => {});
  }

  async post(message, signal) {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    if (this.session) headers['Mcp-Session-Id'] = this.session;
    if (this.version) headers['MCP-Protocol-Version'] = this.version;
    let response;
    try {
      response = await fetch(this.address, { method: 'POST', signal, headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        credentials: 'omit', redirect: 'error', cache: 'no-store', referrerPolicy: 'no-referrer' });
    } catch (e) {
      if (signal.aborted) throw e;
      throw new Error('It does not answer, or does not let pages of this address ask (CORS).');
    }
    if (response.ok) return response;
    response.body?.cancel().catch(() => {});
    throw Object.assign(new Error(`It answers with status ${response.status}.`), { status: response.status });
  }

  // leave ends the session.
  leave() {
    if (!this.session) return;
    fetch(this.address, { method: 'DELETE', headers: { 'Mcp-Session-Id': this.session, 'MCP-Protocol-Version': this.version },
      credentials: 'omit', redirect: 'error' }).catch(() => {});
  }
}

// answerTo reads a response, JSON or events, up to the answer to a request. What a server asks of us meanwhile it is not
// given: we declared that we can do nothing.
async function answerTo(id, response) {
  let size = 0;
  const bounded = response.body.pipeThrough(new TransformStream({
    transform(chunk, to) {
      size += chunk.length;
      if (size > most.answer) to.error(new Error());
      else to.enqueue(chunk);
    },
  }));
  const kind = response.headers.get('Content-Type') ?? '';
  try {
    if (!kind.startsWith('text/event-stream')) return parsed(await new Response(bounded).text());
    for await (const data of events(bounded, (e) => e)) {
      const message = parsed(data);
      if (message.id === id && ('result' in message || 'error' in message)) return message;
    }
    return null;
  } catch (e) {
    throw size > most.answer ? new Error('Its answer is too long.') : e;
  }
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch { /* as below */ }
  throw new Error('Its answer is no JSON.');
}

// said is the text of a tool's result.
function said(result) {
  const parts = (Array.isArray(result.content) ? result.content : []).map((c) => {
    if (c?.type === 'text') return String(c.text);
    if (c?.type === 'resource' && typeof c.resource?.text === 'string') return c.resource.text;
    if (c?.type === 'resource_link') return String(c.uri);
    return `(${short(c?.type) || 'something'} that is no text)`;
  });
  if (!parts.length && result.structuredContent) parts.push(JSON.stringify(result.structuredContent));
  const text = (result.isError ? 'Error: ' : '') + (parts.join('\n') || '(nothing)');
  return text.length > most.text ? text.slice(0, most.text) + `\n(${text.length - most.text} characters more)` : text;
}

const short = (text) => (typeof text === 'string' ? text : '').slice(0, 300);
