// Calls of tools on the screen, and what they gave: a server's tool runs when the user lets it, all others' results are
// typed in.

import { codeBlock } from './code.js';
import { announce, el, icon } from './dom.js';

export function callView(call) {
  let text = call.arguments;
  try {
    text = JSON.stringify(JSON.parse(text), null, 2);
  } catch { /* not complete yet */ }
  return el('details', { class: 'call', open: true },
    el('summary', {}, icon('tool'), el('span', {}, 'Calls ', el('code', {}, call.name))), codeBlock(text, 'json'));
}

export function folded(title, text) {
  return el('details', { class: 'call' }, el('summary', {}, icon('tool'), el('span', {}, title)), el('pre', { tabindex: '0' }, text));
}

// resultForm takes what tools gave. done is called with a text for each call. Where all are servers', the last result
// sends them.
export function resultForm(calls, tools, done) {
  const rows = calls.map((call) => {
    const found = tools.find(call.name);
    return found ? serverRow(call, found, () => { if (rows.every((r) => r.ready?.())) form.requestSubmit(); }) : typedRow(call);
  });
  const form = el('form', {
    class: 'editor',
    submit: (e) => {
      e.preventDefault();
      if (rows.every((r) => !r.ready || r.ready())) done(rows.map((r) => r.text()));
    },
  }, rows.map((r) => r.root), rows.some((r) => !r.ready)
    && el('div', { class: 'row' }, el('button', { type: 'submit', class: 'button first' }, 'Send the result')));
  return form;
}

function typedRow(call) {
  const root = el('textarea', { rows: '2', required: true, 'aria-label': `Result of ${call.name}`, placeholder: `What ${call.name} gave` });
  return { root, text: () => root.value };
}

// serverRow asks whether a call may run. filled is called when it has a result, be it a refusal.
function serverRow(call, { server, tool }, filled) {
  let result, running;
  const says = el('p', { class: 'quiet', role: 'status' }, `${server.address} runs it, if you let it.`);
  const run = el('button', { type: 'button', class: 'button first', click: start }, `Run ${call.name}`);
  const refuse = el('button', { type: 'button', class: 'button', click: end }, 'Refuse');
  const root = el('div', { class: 'consent' }, says, el('div', { class: 'buttons' }, run, refuse));
  const show = (text) => {
    says.textContent = text;
    run.disabled = Boolean(running) || result !== undefined;
    refuse.disabled = result !== undefined;
    refuse.textContent = running ? 'Stop' : 'Refuse';
  };
  const take = (text, shown) => {
    result = text;
    show(shown);
    announce(shown);
    filled();
  };

  async function start() {
    let args;
    try {
      args = JSON.parse(call.arguments || '{}');
    } catch {
      show('What it is called with is no JSON: it cannot run.');
      return;
    }
    running = new AbortController();
    show(`${call.name} runs…`);
    try {
      const text = await server.call(tool.name, args, running.signal);
      running = null;
      take(text, `${call.name} has run.`);
    } catch (e) {
      const stopped = running.signal.aborted;
      running = null;
      show(stopped ? 'Stopped. It may have run all the same.' : `${call.name} did not run: ${e.message}`);
    }
  }

  function end() {
    if (running) running.abort();
    else take('The user refused this call.', `${call.name} was refused.`);
  }
  return { root, ready: () => result !== undefined, text: () => result };
}
