// Tools of servers that the user named: which models are told of, where a call goes, and the fields to name servers by.

import { announce, el, iconButton } from './dom.js';
import { checked, origins, Server } from './mcp.js';

const most = { servers: 16, tools: 128 };

export class Tools {
  // addresses are servers that were named before. acts: keep(addresses), changed()
  constructor(addresses, acts) {
    this.acts = acts;
    this.servers = [];
    for (const address of addresses) {
      try {
        this.add(checked(address));
      } catch { /* sluice was started without it this time: it is kept for another */ }
    }
    this.kept = addresses;
    this.list = el('ul', { class: 'stock' });
  }

  add(address) {
    const s = { server: new Server(address), state: 'connects…', problem: '' };
    this.servers.push(s);
    return s;
  }

  connect() {
    for (const s of this.servers) this.meet(s);
  }

  async meet(s) {
    s.state = 'connects…';
    s.problem = '';
    this.show();
    try {
      await s.server.connect();
      s.state = 'connected';
    } catch (e) {
      s.server.tools = [];
      s.state = '';
      s.problem = e.message;
    }
    this.show();
    announce(`${s.server.address}: ${s.problem || s.state}`);
    this.acts.changed();
  }

  // named are the tools by the names that models have for them: of two alike the first.
  named() {
    const all = new Map();
    for (const { server, state } of this.servers) {
      for (const tool of state === 'connected' ? server.tools : []) {
        const name = tool.name.replace(/[^\w-]/g, '_').slice(0, 64);
        if (!all.has(name) && all.size < most.tools) all.set(name, { server, tool });
      }
    }
    return all;
  }

  // offers are the tools as OpenAI's API has them.
  offers() {
    return [...this.named()].map(([name, { tool }]) => (
      { type: 'function', function: { name, description: tool.description, parameters: tool.schema } }));
  }

  // find is {server, tool} of a name, if it is a server's.
  find(name) {
    return this.named().get(name);
  }

  // fields are those of the settings; nothing where the page may ask nobody.
  fields() {
    if (!origins().length) return [];
    const address = el('input', { id: 'mcp-address', inputmode: 'url', autocomplete: 'off', spellcheck: 'false',
      placeholder: origins()[0] + '/mcp', 'aria-describedby': 'mcp-note' });
    const problem = el('p', { class: 'problem', role: 'alert', hidden: true });
    const submit = (e) => {
      e.preventDefault();
      problem.hidden = true;
      try {
        this.enter(address.value.trim());
        address.value = '';
      } catch (fault) {
        problem.textContent = fault.message;
        problem.hidden = false;
      }
    };
    this.show();
    return [
      el('form', { class: 'field', id: 'mcp', submit }, el('label', { for: 'mcp-address' }, 'Servers of tools (MCP)'), address,
        el('p', { class: 'note', id: 'mcp-note' }, 'The browser asks them itself, at ', origins().join(', '),
          ' alone. Models are told of their tools; each call waits until you let it run.'), problem,
        el('div', {}, el('button', { type: 'submit', class: 'button' }, 'Connect'))),
      this.list];
  }

  // enter takes an address that the user wrote.
  enter(text) {
    const address = checked(text);
    if (this.servers.some((s) => s.server.address === address)) throw new Error('It is in the list already.');
    if (this.servers.length === most.servers) throw new Error(`There may be ${most.servers} servers at most.`);
    this.acts.keep(this.kept = [...this.kept, address]);
    this.meet(this.add(address));
  }

  remove(s) {
    this.servers = this.servers.filter((o) => o !== s);
    this.acts.keep(this.kept = this.kept.filter((a) => a !== s.server.address));
    s.server.leave();
    this.show();
    this.acts.changed();
  }

  show() {
    this.list.hidden = !this.servers.length;
    this.list.replaceChildren(...this.servers.map((s) => el('li', { class: 'mcp' },
      el('div', {}, el('strong', {}, s.server.name || s.server.address), el('span', { class: 'quiet' }, s.server.address),
        s.state && el('span', { class: 'quiet' }, s.state + toolsOf(s)), s.problem && el('span', { class: 'bad' }, s.problem)),
      el('div', { class: 'buttons' },
        iconButton('again', `Connect again to ${s.server.address}`, () => this.meet(s), { disabled: s.state === 'connects…' }),
        iconButton('bin', `Remove ${s.server.address}`, () => this.remove(s))))));
  }
}

function toolsOf({ server, state }) {
  if (state !== 'connected') return '';
  const names = server.tools.map((t) => t.name).join(', ');
  return server.tools.length ? `: ${names}${server.more ? ' and others, which are too many or too large' : ''}` : ': it has no tools';
}
