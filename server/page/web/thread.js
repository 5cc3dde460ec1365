// A conversation is a tree: an edited question or another answer is a sibling of the first, and nothing is lost. What is
// shown is the way from the root to the head. No elements and no storage here.
//
// conversation: {id, title, updated, head, messages: {id: message}}
// message: {id, parent, role, content, files, thought, calls, callId, stats, error, model, created, changed, dropped}

export const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('');

export function begin() {
  return { id: newId(), title: '', updated: Date.now(), head: null, messages: {} };
}

// add puts a message below another one, or at the root, and makes it the head.
export function add(c, parent, message) {
  const m = { id: newId(), parent, created: Date.now() + Object.keys(c.messages).length / 1000, ...message };
  c.messages[m.id] = m;
  c.head = m.id;
  c.updated = Date.now();
  if (!c.title && m.role === 'user') c.title = titleOf(m.content.trim() || m.files?.[0].name || '');
  return m;
}

// titleOf is what a conversation is called until somebody names it.
export function titleOf(text) {
  const line = text.trim().split('\n')[0].replace(/\s+/g, ' ');
  return line.length > 60 ? line.slice(0, 59).trimEnd() + '…' : line || 'Conversation';
}

// way is what is shown, from the root to the head.
export function way(c) {
  const all = [];
  for (let m = c.messages[c.head]; m; m = c.messages[m.parent]) all.unshift(m);
  return all;
}

// drop leaves out an answer that failed: it is no version.
export function drop(m) {
  m.dropped = true;
  m.changed = Date.now();
}

// merge adds what another copy of a conversation has, as another tab wrote it: messages that are missing, and those that
// changed there since.
export function merge(c, other) {
  for (const m of Object.values(other.messages)) {
    const mine = c.messages[m.id];
    if (!mine) c.messages[m.id] = m;
    else if ((m.changed ?? 0) > (mine.changed ?? 0)) Object.assign(mine, m);
  }
  return c;
}

// siblings are the versions of a message, the oldest first.
export function siblings(c, m) {
  return Object.values(c.messages).filter((o) => o.parent === m.parent && o.role === m.role && !o.dropped)
    .sort((a, b) => a.created - b.created);
}

// choose shows another version, with what followed it last.
export function choose(c, m) {
  for (;;) {
    const next = Object.values(c.messages).filter((o) => o.parent === m.id && !o.dropped).sort((a, b) => b.created - a.created)[0];
    if (!next) break;
    m = next;
  }
  c.head = m.id;
}

// wire is the way as the API takes it. Thoughts stay here: templates drop them; answers that failed are left out.
export function wire(messages, system) {
  const out = system.trim() ? [{ role: 'system', content: system }] : [];
  for (const m of messages) {
    if (m.error && !m.content) continue;
    if (m.role === 'tool') out.push({ role: 'tool', tool_call_id: m.callId, content: m.content });
    else if (m.calls?.length) {
      out.push({ role: 'assistant', content: m.content || null, tool_calls: m.calls.map((call) => (
        { id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments || '{}' } })) });
    } else out.push({ role: m.role, content: withFiles(m.content, m.files) });
  }
  return out;
}

// withFiles is a message's content for the API: a part for each file, a text with its name, and what was written.
function withFiles(content, files) {
  if (!files?.length) return content;
  return [...files.map((f) => (f.picture ? { type: 'image_url', image_url: { url: f.picture } }
    : { type: 'text', text: `File ${f.name}:\n${fenced(f.text)}` })),
    ...(content ? [{ type: 'text', text: content }] : [])];
}

// fenced puts text between marks that do not occur in it.
function fenced(text) {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((n, run) => Math.max(n, run.length), 2);
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}
