// Agents by the helpers of the official SDKs: calls are forced for several steps, the helper runs the tools and sends
// their results, and a last step wants words. BASE_URL is the server; a line `ok NAME` or `not ok NAME: why` for each.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import Ajv from 'ajv';
import OpenAI from 'openai';

const BASE = process.env.BASE_URL, model = process.env.MODEL || 'demo', STEPS = 4;
const WEATHER = { type: 'object', properties: { city: { type: 'string', enum: ['Oslo', 'Lima', 'Rome'] }, days: { type: 'integer', minimum: 1, maximum: 7 } }, required: ['city', 'days'], additionalProperties: false };
const NOTE = { type: 'object', properties: { text: { type: 'string', minLength: 2, maxLength: 20 }, tags: { type: 'array', items: { enum: ['a', 'b'] }, maxItems: 2 } }, required: ['text', 'tags'], additionalProperties: false };
const SCHEMAS = { get_weather: WEATHER, take_note: NOTE };
const ajv = new Ajv();

function assert(cond, why) { if (!cond) throw new Error(why); }
let failed = 0;
async function check(name, f) {
  try { await f(); console.log(`ok ${name}`); } catch (e) { failed++; console.log(`not ok ${name}: ${String(e?.stack ?? e).replaceAll('\n', ' ').slice(0, 500)}`); }
}
// toolbox counts what is called: arguments are kept to their schemas, whichever tool it is.
function toolbox() {
  const calls = [];
  const run = (name) => (args) => {
    assert(ajv.validate(SCHEMAS[name], args), `${name}: ${ajv.errorsText()} in ${JSON.stringify(args)}`);
    calls.push(name);
    return name === 'get_weather' ? `${args.city}: ${calls.length + 10} degrees` : JSON.stringify({ noted: args.text });
  };
  return { calls, run };
}
const question = 'What is the weather in Oslo? Take a note of it.';

// ---- ai: the tool loop of Vercel's SDK, by chat completions ----
const provider = createOpenAICompatible({ name: 'sluice', baseURL: BASE + '/v1', apiKey: 'none', includeUsage: true, supportsStructuredOutputs: true });
globalThis.AI_SDK_LOG_WARNINGS = false;
const loop = (t) => ({
  model: provider(model), prompt: question, temperature: 1, seed: 1, maxRetries: 0, maxOutputTokens: 300, stopWhen: stepCountIs(STEPS + 1),
  tools: Object.fromEntries(Object.entries(SCHEMAS).map(([name, s]) => [name, tool({ description: `The tool ${name}`, inputSchema: jsonSchema(s, { validate: (v) => (ajv.validate(s, v) ? { success: true, value: v } : { success: false, error: new Error(ajv.errorsText()) }) }), execute: t.run(name) })])),
  prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 1 ? { type: 'tool', toolName: 'take_note' } : stepNumber < STEPS ? 'required' : 'none' }),
});
function looped(steps, calls, text) {
  assert(steps.length === STEPS + 1, `${steps.length} steps`);
  steps.forEach((s, i) => {
    if (i === STEPS) return assert(s.toolCalls.length === 0 && s.finishReason !== 'tool-calls', 'the last step calls');
    assert(s.finishReason === 'tool-calls' && s.toolCalls.length >= 1, `step ${i}: ${s.finishReason}, ${s.toolCalls.length} calls`);
    assert(s.toolResults.length === s.toolCalls.length, `step ${i}: ${s.toolResults.length} results`);
    assert(s.text === '', `step ${i}: text beside calls: ${s.text}`);
  });
  for (const c of steps[1].toolCalls) assert(c.toolName === 'take_note', `${c.toolName} instead of take_note`);
  const ids = steps.flatMap((s) => s.toolCalls.map((c) => c.toolCallId));
  assert(new Set(ids).size === ids.length && ids.length === calls.length, `${ids.length} ids, ${calls.length} calls`);
  assert(text.length > 0, 'no words in the end');
}
await check('agents.ai.generateText', async () => {
  const t = toolbox(), r = await generateText(loop(t));
  looped(r.steps, t.calls, r.text);
});
await check('agents.ai.streamText', async () => {
  const t = toolbox(), r = streamText({ ...loop(t), onError() {} }), args = {}, whole = {};
  let text = '';
  for await (const p of r.fullStream) {
    if (p.type === 'error') throw p.error;
    if (p.type === 'tool-input-start') args[p.id] = '';
    if (p.type === 'tool-input-delta') args[p.id] += p.delta;
    if (p.type === 'tool-call') whole[p.toolCallId] = p.input;
    if (p.type === 'text-delta') text += p.text;
  }
  for (const [id, input] of Object.entries(whole)) assert(JSON.stringify(JSON.parse(args[id])) === JSON.stringify(input), `the pieces of ${id} are ${args[id]}`);
  looped(await r.steps, t.calls, text);
});

// ---- OpenAI: runTools, whole and streamed, and the helper of responses ----
const openai = new OpenAI({ baseURL: BASE + '/v1', apiKey: 'none', maxRetries: 0 });
const functions = (t) => Object.entries(SCHEMAS).map(([name, parameters]) => ({ type: 'function', function: { name, description: `The tool ${name}`, parameters, strict: true, parse: JSON.parse, function: t.run(name) } }));
const chat = (t, messages, tool_choice) => ({ model, messages, tools: functions(t), tool_choice, temperature: 1, seed: 2, max_tokens: 300 });
for (const stream of [false, true]) {
  await check(`agents.openai.runTools${stream ? '.stream' : ''}`, async () => {
    const t = toolbox();
    let pieces = 0;
    const runner = openai.chat.completions.runTools({ ...chat(t, [{ role: 'user', content: question }], 'required'), stream }, { maxChatCompletions: STEPS });
    if (stream) runner.on('tool_calls.function.arguments.delta', () => pieces++);
    await runner.done();
    assert(runner.allChatCompletions().length === STEPS, `${runner.allChatCompletions().length} completions`);
    for (const c of runner.allChatCompletions()) assert(c.choices[0].finish_reason === 'tool_calls', c.choices[0].finish_reason);
    assert(t.calls.length >= STEPS, `${t.calls.length} calls`);
    if (stream) assert(pieces > t.calls.length, `${pieces} pieces of ${t.calls.length} calls`);
    assert(runner.messages.at(-1).role === 'tool', runner.messages.at(-1).role);
    const last = openai.chat.completions.runTools({ ...chat(t, runner.messages, 'none'), stream });
    assert((await last.finalContent())?.length > 0, 'no words in the end');
  });
}
await check('agents.openai.runTools.named', async () => {
  const t = toolbox(), r = openai.chat.completions.runTools({ ...chat(t, [{ role: 'user', content: question }], { type: 'function', function: { name: 'take_note' } }), stream: true });
  await r.done();
  assert(t.calls.length >= 1 && t.calls.every((n) => n === 'take_note'), t.calls.join());
});
await check('agents.openai.responses.stream', async () => {
  const t = toolbox(), input = [{ role: 'user', content: question }];
  const tools = Object.entries(SCHEMAS).map(([name, parameters]) => ({ type: 'function', name, parameters, strict: true }));
  for (let step = 0; step <= STEPS; step++) {
    const stream = openai.responses.stream({ model, input, tools, tool_choice: step < STEPS ? 'required' : 'none', temperature: 1, max_output_tokens: 300, store: false });
    const snapshots = {};
    stream.on('response.function_call_arguments.delta', (e) => { snapshots[e.item_id] = e.snapshot; });
    const r = await stream.finalResponse();
    if (step === STEPS) return assert(r.output_text.length > 0, 'no words in the end');
    const calls = r.output.filter((x) => x.type === 'function_call');
    assert(calls.length >= 1, `step ${step}: no call`);
    for (const c of calls) {
      assert(snapshots[c.id] === c.arguments, `the pieces of ${c.id} are ${snapshots[c.id]}`);
      input.push({ type: 'function_call', call_id: c.call_id, name: c.name, arguments: c.arguments });
      input.push({ type: 'function_call_output', call_id: c.call_id, output: t.run(c.name)(JSON.parse(c.arguments)) });
    }
  }
});

// ---- Anthropic: the tool runner, whole and streamed, and the stream helper ----
const anthropic = new Anthropic({ baseURL: BASE, apiKey: 'none', maxRetries: 0 });
const beta = (t) => Object.entries(SCHEMAS).map(([name, inputSchema]) => betaTool({ name, description: `The tool ${name}`, inputSchema, run: t.run(name) }));
for (const stream of [false, true]) {
  await check(`agents.anthropic.toolRunner${stream ? '.stream' : ''}`, async () => {
    const t = toolbox();
    let steps = 0, pieces = 0;
    const runner = (messages, type, most) => anthropic.beta.messages.toolRunner({ model, max_tokens: 300, temperature: 1, messages, tools: beta(t), tool_choice: { type }, max_iterations: most, stream });
    const read = async (answer) => {
      if (!stream) return answer;
      for await (const e of answer) if (e.type === 'content_block_delta' && e.delta.type === 'input_json_delta' && e.delta.partial_json) pieces++;
      return answer.finalMessage();
    };
    const forced = runner([{ role: 'user', content: question }], 'any', STEPS);
    for await (const answer of forced) {
      const m = await read(answer);
      assert(m.stop_reason === 'tool_use' && m.content.every((b) => b.type === 'tool_use'), `step ${steps}: ${m.stop_reason} ${JSON.stringify(m.content)}`);
      steps++;
    }
    assert(steps === STEPS, `${steps} steps`);
    assert(t.calls.length >= STEPS, `${t.calls.length} calls`);
    if (stream) assert(pieces > t.calls.length, `${pieces} pieces of ${t.calls.length} calls`);
    for await (const answer of runner(forced.params.messages, 'none', 2)) {
      const m = await read(answer);
      assert(m.stop_reason !== 'tool_use' && m.content.some((b) => b.type === 'text' && b.text), JSON.stringify(m.content));
    }
  });
}
await check('agents.anthropic.stream', async () => {
  const t = toolbox(), messages = [{ role: 'user', content: question }];
  const tools = Object.entries(SCHEMAS).map(([name, input_schema]) => ({ name, description: name, input_schema }));
  for (let step = 0; step <= STEPS; step++) {
    const s = anthropic.messages.stream({ model, max_tokens: 300, temperature: 1, messages, tools, tool_choice: step < STEPS ? { type: 'any' } : { type: 'none' } });
    let pieces = 0, last;
    s.on('inputJson', (piece, snapshot) => { pieces++; last = snapshot; });
    const m = await s.finalMessage();
    if (step === STEPS) return assert((await s.finalText()).length > 0, 'no words in the end');
    const uses = m.content.filter((b) => b.type === 'tool_use');
    assert(uses.length >= 1 && pieces > uses.length && JSON.stringify(last) === JSON.stringify(uses.at(-1).input), `step ${step}: ${pieces} pieces, ${uses.length} calls`);
    messages.push({ role: 'assistant', content: m.content }, { role: 'user', content: uses.map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: t.run(b.name)(b.input) })) });
  }
});
console.log(`${failed} failed`);
process.exitCode = failed ? 1 : 0;
