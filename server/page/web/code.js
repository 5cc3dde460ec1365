// Blocks of code: their colours, by highlight.js, and a button that copies them.

import hljs from './vendor/highlight/core.js';
import bash from './vendor/highlight/bash.js';
import c from './vendor/highlight/c.js';
import cpp from './vendor/highlight/cpp.js';
import diff from './vendor/highlight/diff.js';
import go from './vendor/highlight/go.js';
import ini from './vendor/highlight/ini.js';
import java from './vendor/highlight/java.js';
import javascript from './vendor/highlight/javascript.js';
import json from './vendor/highlight/json.js';
import kotlin from './vendor/highlight/kotlin.js';
import python from './vendor/highlight/python.js';
import rust from './vendor/highlight/rust.js';
import sql from './vendor/highlight/sql.js';
import typescript from './vendor/highlight/typescript.js';
import xml from './vendor/highlight/xml.js';
import yaml from './vendor/highlight/yaml.js';
import { copyButton, el } from './dom.js';

const languages = {
  bash, c, cpp, diff, go, ini, java, javascript, json, kotlin, python, rust, sql, typescript, xml, yaml,
};
for (const [name, grammar] of Object.entries(languages)) hljs.registerLanguage(name, grammar);
hljs.registerAliases(['shell', 'console', 'zsh'], { languageName: 'bash' });

// longest is the most characters that are coloured: more would make the page slow.
const longest = 40_000;

// deepest is how many coloured parts are in one another: a browser takes minutes for thousands of them.
const deepest = 40;

// codeBlock is code with its language's name and a button that copies it.
export function codeBlock(text, language) {
  const label = language || 'code';
  return el('figure', { class: 'code' },
    el('figcaption', {}, el('span', {}, label), copyButton(`Copy the ${label}`, () => text)),
    el('pre', { tabindex: '0', 'aria-label': label }, el('code', {}, coloured(text, language))));
}

// coloured is the text as elements, by what highlight.js takes its parts for. Its HTML is not used: what it was made of
// is a tree of texts and scopes.
export function coloured(text, language) {
  if (!language || !hljs.getLanguage(language) || text.length > longest) return [text];
  try {
    return parts(hljs.highlight(text, { language, ignoreIllegals: true })._emitter.root);
  } catch {
    return [text];
  }
}

function parts(node, depth = 0) {
  if (depth === deepest) return [textOf(node)];
  return node.children.map((child) => (typeof child === 'string' ? child
    : el('span', child.scope ? { class: 'hl-' + child.scope.split('.')[0] } : {}, parts(child, depth + 1))));
}

// textOf is a part's text. It does not call itself: the part may be deeper than the stack.
function textOf(node) {
  const rest = [...node.children].reverse();
  let text = '';
  while (rest.length) {
    const child = rest.pop();
    if (typeof child === 'string') text += child;
    else for (let i = child.children.length - 1; i >= 0; i--) rest.push(child.children[i]);
  }
  return text;
}
