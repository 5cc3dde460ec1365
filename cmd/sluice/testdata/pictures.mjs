// Official clients of three APIs show PICTURE to a server at BASE_URL, between BEFORE and AFTER, and read WANT as it comes;
// Ollama's shows it before AFTER, and reads what OpenAI's does then.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

const { BASE_URL: host, BEFORE, AFTER, WANT, PICTURE } = process.env;
const data = readFileSync(PICTURE).toString('base64');
const model = 'seeing';
const openai = new OpenAI({ baseURL: `${host}/v1`, apiKey: 'none', maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: host, apiKey: 'none', maxRetries: 0 });
const ollama = new Ollama({ host });
const joined = async (stream, text) => { let all = ''; for await (const e of stream) all += text(e) ?? ''; return all; };

const url = `data:image/png;base64,${data}`;
const asked = (content) => openai.chat.completions.create({
  model, stream: true, temperature: 0, max_tokens: 12, messages: [{ role: 'user', content }],
});
const delta = (e) => e.choices[0]?.delta.content;
const shown = { type: 'image_url', image_url: { url } };
const text = (t) => ({ type: 'text', text: t });
assert.equal(await joined(await asked([text(BEFORE), shown, text(AFTER)]), delta), WANT);

const responses = await openai.responses.create({
  model, stream: true, temperature: 0, max_output_tokens: 12,
  input: [{
    role: 'user',
    content: [
      { type: 'input_text', text: BEFORE }, { type: 'input_image', image_url: url, detail: 'auto' },
      { type: 'input_text', text: AFTER },
    ],
  }],
});
assert.equal(await joined(responses, (e) => (e.type === 'response.output_text.delta' ? e.delta : '')), WANT);

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
const messages = anthropic.messages.stream({
  model, max_tokens: 12, temperature: 0, messages: [{ role: 'user', content: [text(BEFORE), image, text(AFTER)] }],
});
assert.equal(await messages.finalText(), WANT);

const chat = await ollama.chat({
  model, stream: true, options: { temperature: 0, num_predict: 12 },
  messages: [{ role: 'user', content: AFTER, images: [new Uint8Array(readFileSync(PICTURE))] }],
});
assert.equal(await joined(chat, (e) => e.message.content), await joined(await asked([shown, text(AFTER)]), delta));
console.log('all good');
