// The little HTML that models write in Markdown: marks within a line, and details. Elements are made by the names listed
// here, without attributes; all other HTML stays the text that it is.

import { el } from './dom.js';

const marks = new Set(['sub', 'sup', 'kbd', 'b', 'i', 'u', 's', 'em', 'strong', 'mark', 'small', 'del',
  'ins', 'samp', 'var', 'code', 'q', 'cite']);
const tag = /^<(\/?)([a-z]+)\s*>$/i;

// pairs folds the tokens between a mark and its end into one: {type: 'mark', name, tokens}.
export function pairs(tokens) {
  const open = []; // {name, at} where a mark began in out
  const out = [];
  for (const token of tokens) {
    const [, end, name] = (token.type === 'html' && tag.exec(token.raw)) || [];
    const known = name && marks.has(name.toLowerCase());
    if (known && end) {
      const at = open.findLastIndex((o) => o.name === name.toLowerCase());
      if (at >= 0) {
        const from = open[at].at;
        out.push({ type: 'mark', name: open[at].name, tokens: out.splice(from).slice(1) });
        open.length = at;
        continue;
      }
    }
    if (known && !end) open.push({ name: name.toLowerCase(), at: out.length });
    out.push(token);
  }
  return out;
}

// whole begins HTML that is a document or its part, which is shown as code; other HTML is a paragraph.
const whole = /^\s*<(?:[!?]|\/?(?:html|head|body|script|style|pre|svg|iframe|form|table|textarea|template)\b)/i;

export const isCode = (text) => whole.test(text);

const opening = /<details(?:\s+open)?\s*>/gi;
const begins = /^\s*<details(?:\s+open)?\s*>/i;
const closing = /<\/details\s*>/gi;
const times = (text, what) => (text.match(what) ?? []).length;

// fold joins the blocks from <details> to its end, or to that of the text: {type: 'details', raw, title, body}.
export function fold(tokens) {
  const out = [];
  for (let i = 0; i < tokens.length; i++) {
    if (tokens[i].type !== 'html' || !begins.test(tokens[i].raw)) {
      out.push(tokens[i]);
      continue;
    }
    let raw = '';
    let depth = 0;
    do {
      const isMarkup = tokens[i].type === 'html';
      raw += tokens[i].raw;
      if (isMarkup) depth += times(tokens[i].raw, opening) - times(tokens[i].raw, closing);
    } while (depth > 0 && ++i < tokens.length);
    out.push(details(raw));
  }
  return out;
}

function details(raw) {
  const inner = raw.replace(begins, '').replace(/<\/details\s*>\s*$/i, '');
  const title = /^\s*<summary\s*>([\s\S]*?)<\/summary\s*>/i.exec(inner);
  return { type: 'details', raw, title: title?.[1].trim() || 'Details', body: title ? inner.slice(title[0].length) : inner };
}

export const foldedView = (title, children) => el('details', { class: 'folded' }, el('summary', {}, title), children);

const near = 4000; // characters in which a paragraph's end is looked for: each paragraph looks

// notes are footnotes: [^1] in a line, and [^1]: with its text on a line of its own.
export const notes = [{
  name: 'note', level: 'block',
  start: (text) => /\n\[\^/.exec(text.slice(0, near))?.index,
  tokenizer(text) {
    const found = /^\[\^([^\]\s]{1,40})\]:[ \t]+([^\n]+(?:\n[ \t]+[^\n]+)*)(?:\n+|$)/.exec(text);
    if (!found) return undefined;
    return { type: 'note', raw: found[0], label: found[1], tokens: this.lexer.inline(found[2]) };
  },
}, {
  name: 'noteMark', level: 'inline',
  start: (text) => /\[\^/.exec(text)?.index,
  tokenizer(text) {
    const found = /^\[\^([^\]\s]{1,40})\]/.exec(text);
    return found ? { type: 'noteMark', raw: found[0], label: found[1] } : undefined;
  },
}];
