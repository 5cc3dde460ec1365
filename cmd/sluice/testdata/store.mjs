// Ollama's own client changes the store of a server at BASE_URL, which may pull Ann/Mini-GGUF:Q8_0.
import { strict as assert } from 'node:assert';
import { Ollama } from 'ollama';

const c = new Ollama({ host: process.env.BASE_URL });
const model = 'hf.co/Ann/Mini-GGUF:Q8_0';
const names = async () => (await c.list()).models.map((m) => m.name);
const lines = async (stream) => { const all = []; for await (const p of stream) all.push(p); return all; };
const fails = async (status, f) => assert.equal(await f().then(() => 200, (e) => e.status_code), status);

const pulled = await lines(await c.pull({ model, stream: true }));
assert.equal(pulled.at(-1).status, 'success');
assert.ok(pulled.some((p) => p.total > 0 && p.completed === p.total && p.digest.startsWith('sha256:')));
assert.equal((await c.pull({ model })).status, 'success');
const created = await lines(await c.create({
  model: 'brief', from: model, system: 'You are a parrot.', license: 'MIT', stream: true,
  parameters: { temperature: 0, stop: ['Paris'] },
  messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello.' }],
  template: '{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}{{ if .Prompt }}<|im_start|>user\n'
    + '{{ .Prompt }}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ .Response }}<|im_end|>\n',
}));
assert.equal(created.at(-1).status, 'success');
const said = await c.chat({ model: 'brief', messages: [{ role: 'user', content: 'What is the capital of France?' }] });
assert.equal(said.message.content, 'The capital of France is ');
const shown = await c.show({ model: 'brief' });
assert.equal(shown.system, 'You are a parrot.');
assert.equal(shown.messages.length, 2);
assert.match(shown.parameters, /^stop +"Paris"$/m);
assert.equal((await c.copy({ source: 'brief', destination: 'other:v2' })).status, 'success');
assert.equal((await c.delete({ model: 'brief' })).status, 'success');
assert.deepEqual(await names(), ['Ann/Mini-GGUF:Q8_0', 'other:v2']);
await fails(404, () => c.show({ model: 'brief' }));
await fails(404, () => c.delete({ model: 'brief' }));
await fails(404, () => c.create({ model: 'x', from: 'none' }));
await fails(404, () => c.pull({ model: 'Ann/None' }));
console.log('all good');
