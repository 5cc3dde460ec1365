// The client table: what real clients of npm do with a server. BASE_URL is the server, MODEL a model that writes and
// calls tools, EMBED_MODEL one of vectors, if there is one. A line for each client that is installed: what was tried, and
// full or partial; arguments name the packages to ask by. A partial row fails.
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BASE = process.env.BASE_URL, V1 = BASE + '/v1', model = process.env.MODEL || 'demo', embedModel = process.env.EMBED_MODEL;
const wanted = process.argv.slice(2), here = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
const question = 'What is the capital of France?';
const CITY = { type: 'object', properties: { city: { type: 'string', enum: ['Oslo', 'Lima'] }, days: { type: 'integer', minimum: 1, maximum: 3 } }, required: ['city', 'days'], additionalProperties: false };
globalThis.AI_SDK_LOG_WARNINGS = false;
Object.assign(process.env, { OPENAI_API_KEY: 'none', OPENAI_AGENTS_DISABLE_TRACING: '1', GENKIT_ENV: 'prod', LANGCHAIN_CALLBACKS_BACKGROUND: 'false' });

function assert(cond, why) { if (!cond) throw new Error(why); }
const paris = (text) => assert(/Paris/.test(text), `the answer is ${JSON.stringify(text)?.slice(0, 80)}`);
const placed = (v) => assert(['Oslo', 'Lima'].includes(v?.city) && v.days >= 1 && v.days <= 3, `not in the form: ${JSON.stringify(v)?.slice(0, 80)}`);
const words = (text) => assert(typeof text === 'string' && text.length > 0, `no words: ${JSON.stringify(text)?.slice(0, 80)}`);
async function collect(stream, text) {
  let all = '', pieces = 0;
  for await (const e of stream) { const piece = text(e); if (piece) { all += piece; pieces++; } }
  assert(pieces > 1, `${pieces} pieces`);
  return all;
}
// aborted wants what was cut after its first event to end, whatever it ends with.
async function aborted(stream, cut) {
  try { for await (const _ of stream) cut(); } catch { /* as most clients say it */ }
}
// run starts a program in a folder of its own, with files there, after the program's own set-up, or a line of shell.
async function run(program, args, env, files = {}, before) {
  const home = mkdtempSync(join(tmpdir(), 'sluice-client-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text);
  const start = (file, words) => new Promise((ok, no) => {
    const child = execFile(file, words, { cwd: home, timeout: 170_000, maxBuffer: 1 << 24,
      env: { PATH: process.env.PATH, HOME: home, NO_COLOR: '1', CI: '1', ...env(home) } }, (e, out, err) => (e ? no(new Error((err || out || String(e)).slice(-400))) : ok(out)));
    child.stdin.end();
  });
  const own = join(here, 'node_modules/.bin', program);
  try {
    if (typeof before === 'string') await start('sh', ['-c', before]);
    else if (before) await start(own, before);
    return await start(own, args(home));
  } finally {
    for (let left; (left = leftBehind(home)).length; await new Promise((ok) => setTimeout(ok, 20))) left.forEach(kill);
    rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  }
}
// kill ends a process at once, if it has not ended by itself: while it ends by and by, it writes where it is removed.
function kill(pid) {
  try { process.kill(pid, 'SIGKILL'); } catch (e) { if (e.code !== 'ESRCH') throw e; }
}
// leftBehind are processes that a program left, which name its folder.
function leftBehind(home) {
  const names = (pid) => { try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(home); } catch { return false; } };
  return existsSync('/proc') ? readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && names(pid)) : [];
}

// Rows: a client's name, the packages that it needs, and checks by the columns of the table. own: what a client does not
// do itself, with its reason, where it is no fault of the server's.
const rows = [];
const row = (name, packages, checks, own = {}) => rows.push({ name, packages, checks, own });

row('openai', ['openai'], {
  chat: async ({ openai }) => paris((await openaiOf(openai).chat.completions.create(asked)).choices[0].message.content),
  stream: async ({ openai }) => paris(await collect(await openaiOf(openai).chat.completions.create({ ...asked, stream: true }), (e) => e.choices[0]?.delta.content)),
  abort: async ({ openai }) => { const s = await openaiOf(openai).chat.completions.create({ ...endless, stream: true }); await aborted(s, () => s.controller.abort()); },
  tools: async ({ openai }) => {
    const calls = [];
    const r = openaiOf(openai).chat.completions.runTools({ ...asked, tool_choice: 'required', max_tokens: 200, tools: [{ type: 'function', function: { name: 'get_weather', description: 'the weather', parameters: CITY, parse: JSON.parse, function: (v) => { calls.push(v); return 'sunny'; } } }] }, { maxChatCompletions: 2 });
    await r.done();
    assert(calls.length >= 2, `${calls.length} calls`);
    calls.forEach(placed);
  },
  forms: async ({ openai }) => placed(JSON.parse((await openaiOf(openai).chat.completions.create({ ...asked, response_format: { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: CITY } } })).choices[0].message.content)),
  responses: async ({ openai }) => {
    const c = openaiOf(openai), r = await c.responses.create({ model, input: question, temperature: 0, max_output_tokens: 40 });
    paris(r.output_text);
    words((await c.responses.create({ model, input: 'And of Japan?', previous_response_id: r.id, temperature: 0, max_output_tokens: 40 })).output_text);
  },
  embed: async ({ openai }) => embedModel && assert((await openaiOf(openai).embeddings.create({ model: embedModel, input: ['a', 'b'] })).data.length === 2, 'not two vectors'),
});
const openaiOf = (m) => new m.default({ baseURL: V1, apiKey: 'none', maxRetries: 0 });
const asked = { model, messages: [{ role: 'user', content: question }], temperature: 0, max_tokens: 60 };
const endless = { model, messages: [{ role: 'user', content: 'Tell me a long story.' }], max_tokens: 2000, temperature: 1 };

row('@anthropic-ai/sdk', ['@anthropic-ai/sdk'], {
  chat: async (m) => paris((await anthropicOf(m).messages.create(asked)).content[0].text),
  stream: async (m) => paris(await anthropicOf(m).messages.stream(asked).finalText()),
  abort: async (m) => { const s = anthropicOf(m).messages.stream(endless); s.on('error', () => {}); s.on('abort', () => {}); await aborted(s, () => s.abort()); },
  tools: async (m) => placed((await anthropicOf(m).messages.create({ ...asked, max_tokens: 200, tool_choice: { type: 'any' }, tools: [{ name: 'get_weather', input_schema: CITY }, { type: 'web_search_20250305', name: 'web_search' }] })).content.find((b) => b.type === 'tool_use').input),
  forms: async (m) => placed(JSON.parse((await anthropicOf(m).messages.create({ ...asked, output_config: { format: { type: 'json_schema', schema: CITY } } })).content[0].text)),
  documents: async (m) => words((await anthropicOf(m).messages.create({ ...asked, messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Paris is a city.' } }, { type: 'text', text: question }] }] })).content[0].text),
  count: async (m) => assert((await anthropicOf(m).messages.countTokens({ model, messages: asked.messages })).input_tokens > 5, 'too few tokens'),
});
const anthropicOf = (m) => new m['@anthropic-ai/sdk'].default({ baseURL: BASE, apiKey: 'none', maxRetries: 0 });

row('ollama', ['ollama'], {
  chat: async ({ ollama }) => paris((await ollamaOf(ollama).chat({ model, messages: asked.messages, options: { temperature: 0, num_predict: 40 } })).message.content),
  stream: async ({ ollama }) => paris(await collect(await ollamaOf(ollama).chat({ model, messages: asked.messages, stream: true, options: { temperature: 0, num_predict: 40 } }), (e) => e.message.content)),
  abort: async ({ ollama }) => { const s = await ollamaOf(ollama).generate({ model, prompt: 'Tell me a long story.', stream: true, options: { num_predict: 2000 } }); await aborted(s, () => s.abort()); },
  tools: async ({ ollama }) => {
    const m = (await ollamaOf(ollama).chat({ model, messages: [{ role: 'user', content: 'What is the weather in Oslo?' }], options: { temperature: 0, num_predict: 200 }, tools: [{ type: 'function', function: { name: 'get_weather', description: 'the weather of a city', parameters: CITY } }] })).message;
    for (const c of m.tool_calls ?? []) { assert(c.function.name === 'get_weather', c.function.name); placed(c.function.arguments); }
  },
  forms: async ({ ollama }) => placed(JSON.parse((await ollamaOf(ollama).chat({ model, messages: asked.messages, format: CITY })).message.content)),
  show: async ({ ollama }) => {
    const s = await ollamaOf(ollama).show({ model });
    assert(s.capabilities.includes('completion') && s.details.family && Object.keys(s.model_info).length > 3, JSON.stringify(s).slice(0, 200));
    for (const m of (await ollamaOf(ollama).list()).models) assert(m.size > 0, `${m.name} has ${m.size} bytes`);
  },
  context: async ({ ollama }) => assert((await ollamaOf(ollama).generate({ model, prompt: question, options: { num_predict: 5 } })).context?.length > 5, 'no context'),
  embed: async ({ ollama }) => embedModel && assert((await ollamaOf(ollama).embed({ model: embedModel, input: ['a', 'b'] })).embeddings.length === 2, 'not two vectors'),
});
const ollamaOf = (m) => new m.Ollama({ host: BASE });

// ai: the same questions by each of its providers.
for (const [name, pack, of] of [
  ['openai-compatible', '@ai-sdk/openai-compatible', (m) => m.createOpenAICompatible({ name: 'sluice', baseURL: V1, apiKey: 'none', supportsStructuredOutputs: true })(model)],
  ['openai, chat', '@ai-sdk/openai', (m) => m.createOpenAI({ baseURL: V1, apiKey: 'none' }).chat(model)],
  ['openai, responses', '@ai-sdk/openai', (m) => m.createOpenAI({ baseURL: V1, apiKey: 'none' }).responses(model)],
  ['anthropic', '@ai-sdk/anthropic', (m) => m.createAnthropic({ baseURL: V1, apiKey: 'none' })(model)],
  ['ollama', 'ollama-ai-provider-v2', (m) => m.createOllama({ baseURL: BASE + '/api' })(model)],
]) {
  const common = (m) => ({ model: of(m[pack]), temperature: 0, maxOutputTokens: 200, maxRetries: 0 });
  row(`ai (${name})`, ['ai', pack], {
    chat: async (m) => paris((await m.ai.generateText({ ...common(m), prompt: question })).text),
    stream: async (m) => paris(await collect(m.ai.streamText({ ...common(m), prompt: question, onError() {} }).textStream, (e) => e)),
    abort: async (m) => { const a = new AbortController(); await aborted(m.ai.streamText({ ...common(m), maxOutputTokens: 2000, prompt: 'Tell me a long story.', abortSignal: a.signal, onError() {} }).textStream, () => a.abort()); },
    tools: async (m) => {
      const calls = [];
      const r = await m.ai.generateText({ ...common(m), prompt: 'What is the weather in Oslo?', stopWhen: m.ai.stepCountIs(3), toolChoice: name === 'ollama' ? 'auto' : 'required',
        tools: { get_weather: m.ai.tool({ description: 'the weather of a city', inputSchema: m.ai.jsonSchema(CITY), execute: (v) => { calls.push(v); return 'sunny'; } }) } });
      calls.forEach(placed);
      assert(name === 'ollama' ? r.text || calls.length : calls.length >= 3, `${calls.length} calls`);
    },
    forms: async (m) => placed((await m.ai.generateObject({ ...common(m), prompt: question, schema: m.ai.jsonSchema(CITY) })).object),
  });
}

for (const [name, pack, of] of [
  ['openai, chat', '@langchain/openai', (m) => new m.ChatOpenAI({ model, apiKey: 'none', temperature: 0, maxTokens: 200, configuration: { baseURL: V1 }, maxRetries: 0 })],
  ['openai, responses', '@langchain/openai', (m) => new m.ChatOpenAI({ model, apiKey: 'none', temperature: 0, maxTokens: 200, useResponsesApi: true, configuration: { baseURL: V1 }, maxRetries: 0 })],
  ['ollama', '@langchain/ollama', (m) => new m.ChatOllama({ model, baseUrl: BASE, temperature: 0, numPredict: 200, maxRetries: 0 })],
  ['anthropic', '@langchain/anthropic', (m) => new m.ChatAnthropic({ model, apiKey: 'none', anthropicApiUrl: BASE, temperature: 0, maxTokens: 200, maxRetries: 0 })],
]) {
  const text = (m) => (typeof m.content === 'string' ? m.content : m.content.map((c) => c.text ?? '').join(''));
  row(`langchain (${name})`, ['langchain', pack, 'zod'], {
    chat: async (m) => paris(text(await of(m[pack]).invoke(question))),
    stream: async (m) => paris(await collect(await of(m[pack]).stream(question), text)),
    abort: async (m) => { const a = new AbortController(); await aborted(await of(m[pack]).stream('Tell me a long story.', { signal: a.signal }), () => a.abort()); },
    tools: async (m) => {
      const weather = m.langchain.tool(() => 'sunny', { name: 'get_weather', description: 'the weather of a city', schema: m.zod.z.object({ city: m.zod.z.enum(['Oslo', 'Lima']) }) });
      const r = await m.langchain.createAgent({ model: of(m[pack]), tools: [weather] }).invoke({ messages: [{ role: 'user', content: 'What is the weather in Oslo?' }] }, { recursionLimit: 60 });
      assert(r.messages.length >= 2, `${r.messages.length} messages`);
    },
    forms: async (m) => {
      const schema = m.zod.z.object({ city: m.zod.z.enum(['Oslo', 'Lima']), days: m.zod.z.number().int().min(1).max(3) });
      for (const method of name.startsWith('anthropic') ? [undefined] : ['jsonSchema', 'functionCalling']) placed(await of(m[pack]).withStructuredOutput(schema, method && { method, name: 'place' }).invoke('What is the weather in Oslo?'));
    },
  });
}

for (const kind of ['chat_completions', 'responses']) {
  row(`@openai/agents (${kind})`, ['@openai/agents', 'openai', 'zod'], {
    chat: async (m) => paris((await agent(m, kind, { name: 'A', instructions: '' })(question)).finalOutput),
    stream: async (m) => { const r = await agent(m, kind, { name: 'A', instructions: '' })(question, { stream: true }); paris(await collect(r.toTextStream(), (e) => e)); },
    tools: async (m) => {
      const calls = [];
      const get = m['@openai/agents'].tool({ name: 'get_weather', description: 'the weather of a city', parameters: m.zod.z.object({ city: m.zod.z.enum(['Oslo', 'Lima']) }), execute: (v) => { calls.push(v); return 'sunny'; } });
      await agent(m, kind, { name: 'A', tools: [get], modelSettings: { temperature: 0, maxTokens: 200, toolChoice: 'required' } })('What is the weather in Oslo?');
      assert(calls.length, 'no call');
    },
    forms: async (m) => placed((await agent(m, kind, { name: 'A', outputType: m.zod.z.object({ city: m.zod.z.enum(['Oslo', 'Lima']), days: m.zod.z.number().int().min(1).max(3) }) })('Give me a place.')).finalOutput),
    'handoffs 8 of 8': async (m) => {
      for (let seed = 0; seed < 8; seed++) {
        const weather = new m['@openai/agents'].Agent({ name: 'Weather', instructions: 'You know the weather.', ...settings(m, kind) });
        const r = await agent(m, kind, { name: 'T', handoffs: [weather], modelSettings: { temperature: 1, maxTokens: 200, toolChoice: 'required', providerData: { seed } } })('What is the weather in Paris?');
        assert(r.lastAgent.name === 'Weather', `${seed}: ${r.lastAgent.name} answers`);
      }
    },
  });
}
function settings(m, kind) {
  const a = m['@openai/agents'], client = openaiOf(m.openai);
  return { model: kind === 'responses' ? new a.OpenAIResponsesModel(client, model) : new a.OpenAIChatCompletionsModel(client, model), modelSettings: { temperature: 0, maxTokens: 200 } };
}
function agent(m, kind, what) {
  const a = m['@openai/agents'];
  a.setTracingDisabled(true);
  return (text, options) => a.run(new a.Agent({ ...settings(m, kind), ...what }), text, { maxTurns: 4, ...options });
}

row('llamaindex', ['llamaindex', '@llamaindex/openai', '@llamaindex/ollama'], {
  chat: async (m) => {
    const messages = asked.messages;
    paris((await new m['@llamaindex/openai'].OpenAI({ model, apiKey: 'none', baseURL: V1, temperature: 0, maxTokens: 60 }).chat({ messages })).message.content);
    paris((await new m['@llamaindex/ollama'].Ollama({ model, config: { host: BASE } }).chat({ messages })).message.content);
  },
  stream: async (m) => paris(await collect(await new m['@llamaindex/openai'].OpenAI({ model, apiKey: 'none', baseURL: V1, temperature: 0, maxTokens: 60 }).chat({ messages: asked.messages, stream: true }), (e) => e.delta)),
  embed: async (m) => embedModel && assert((await new m['@llamaindex/openai'].OpenAIEmbedding({ model: embedModel, apiKey: 'none', baseURL: V1 }).getTextEmbedding('a')).length > 8, 'no vector'),
});
row('@instructor-ai/instructor', ['@instructor-ai/instructor', 'openai', 'zod'], {
  forms: async (m) => {
    const { z } = await import('zod/v3'); // it reads schemas of that version alone
    const schema = z.object({ city: z.enum(['Oslo', 'Lima']), days: z.number().int().min(1).max(3) });
    for (const mode of ['TOOLS', 'JSON_SCHEMA']) placed(await m['@instructor-ai/instructor'].default({ client: openaiOf(m.openai), mode }).chat.completions.create({ ...asked, response_model: { schema, name: 'place' }, max_retries: 0 }));
  },
});
row('@mastra/core', ['@mastra/core'], {
  chat: async (m) => paris((await (await mastra()).generate(question)).text),
  stream: async (m) => paris(await collect((await (await mastra()).stream(question)).textStream, (e) => e)),
});
async function mastra() {
  const { Agent } = await import('@mastra/core/agent');
  return new Agent({ id: 'a', name: 'a', instructions: 'Answer.', model: { id: 'sluice/' + model, url: V1, apiKey: 'none' } });
}
row('genkit (compat-oai)', ['genkit', '@genkit-ai/compat-oai'], {
  chat: async (m) => paris((await genkitOf(m).generate({ model: 'sluice/' + model, prompt: question, config: { temperature: 0 } })).text),
  stream: async (m) => paris(await collect(genkitOf(m).generateStream({ model: 'sluice/' + model, prompt: question, config: { temperature: 0 } }).stream, (e) => e.text)),
});
function genkitOf(m) {
  const c = m['@genkit-ai/compat-oai'];
  return m.genkit.genkit({ plugins: [c.openAICompatible({ name: 'sluice', apiKey: 'none', baseURL: V1,
    resolver: async (client, kind, name) => (kind === 'model' ? c.defineCompatOpenAIModel({ name: `sluice/${name}`, client, pluginOptions: { name: 'sluice' }, modelRef: c.compatOaiModelRef({ name: `sluice/${name}` }) }) : undefined) })] });
}
for (const [provider, apiBase] of [['openai', V1 + '/'], ['anthropic', V1 + '/'], ['llama.cpp', BASE + '/'], ['ollama', V1 + '/'], ['lmstudio', V1 + '/'], ['vllm', V1 + '/']]) {
  const of = (m, name = model) => m['@continuedev/openai-adapters'].constructLlmApi({ provider, apiKey: 'none', apiBase, model: name });
  const never = new AbortController().signal;
  row(`@continuedev/openai-adapters (${provider})`, ['@continuedev/openai-adapters'], {
    chat: async (m) => paris((await of(m).chatCompletionNonStream({ ...asked, stream: false }, never)).choices[0].message.content),
    stream: async (m) => paris(await collect(of(m).chatCompletionStream({ ...asked, stream: true }, never), (e) => e.choices[0]?.delta.content)),
    ...(provider !== 'anthropic' && { embed: async (m) => embedModel && assert((await of(m, embedModel).embed({ model: embedModel, input: ['a', 'b'] })).data.length === 2, 'not two vectors') }),
  }, provider === 'llama.cpp' ? { embed: 'it reads vectors of /embeddings in OpenAI’s shape; llama-server has another there' } : {});
}
row('@huggingface/inference', ['@huggingface/inference'], {
  chat: async (m) => paris((await new m['@huggingface/inference'].InferenceClient('none', { endpointUrl: BASE }).chatCompletion(asked)).choices[0].message.content),
  stream: async (m) => paris(await collect(new m['@huggingface/inference'].InferenceClient('none', { endpointUrl: BASE }).chatCompletionStream(asked), (e) => e.choices[0]?.delta.content)),
});
row('multi-llm-ts', ['multi-llm-ts'], {
  chat: async (m) => {
    const l = m['multi-llm-ts'], messages = [new l.Message('system', ''), new l.Message('user', question)];
    for (const [name, config] of [['openai', { baseURL: V1, apiKey: 'none' }], ['ollama', { baseURL: BASE }], ['lmstudio', { baseURL: V1 }]]) {
      const engine = l.igniteEngine(name, config);
      paris((await engine.complete(engine.buildModel(model), messages, { temperature: 0 })).content);
    }
  },
});
row('@chroma-core/ollama', ['@chroma-core/ollama', 'chromadb'], {
  embed: async (m) => embedModel && assert((await new m['@chroma-core/ollama'].OllamaEmbeddingFunction({ url: BASE, model: embedModel }).generate(['a', 'b'])).length === 2, 'not two vectors'),
});
row('token.js', ['token.js'], {
  chat: async (m) => paris((await new m['token.js'].TokenJS({ apiKey: 'none', baseURL: V1 }).chat.completions.create({ ...asked, provider: 'openai-compatible' })).choices[0].message.content),
});
row('@ax-llm/ax', ['@ax-llm/ax'], {
  chat: async (m) => {
    const ai = m['@ax-llm/ax'].ai({ name: 'openai', apiKey: 'none', apiURL: V1, config: { model, stream: false } });
    paris((await ai.chat({ chatPrompt: [{ role: 'user', content: question }], model })).results[0].content);
  },
});

// Programs that run in a terminal.
row('Claude Code', ['@anthropic-ai/claude-code'], {
  chat: async () => words(await run('claude', () => ['-p', question, '--model', model], () => ({ ANTHROPIC_BASE_URL: BASE, ANTHROPIC_AUTH_TOKEN: 'none', ANTHROPIC_SMALL_FAST_MODEL: model, DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' }))),
});
row('Codex', ['@openai/codex'], {
  chat: async () => words(await run('codex', () => ['exec', '--skip-git-repo-check', '--sandbox', 'read-only', question], (home) => ({ CODEX_HOME: home }),
    { 'config.toml': `model = "${model}"\nmodel_provider = "sluice"\n[model_providers.sluice]\nname = "sluice"\nbase_url = "${V1}"\nwire_api = "responses"\n` })),
});
row('Qwen Code', ['@qwen-code/qwen-code'], {
  chat: async () => words(await run('qwen', () => ['--auth-type', 'openai', question], () => ({ OPENAI_BASE_URL: V1, OPENAI_API_KEY: 'none', OPENAI_MODEL: model }))),
});
for (const [provider, apiBase] of [['openai', V1], ['ollama', BASE]]) row(`Continue (cn, ${provider})`, ['@continuedev/cli'], {
  chat: async () => words(await run('cn', (home) => ['-p', question, '--config', join(home, 'config.yaml')], () => ({}), { 'config.yaml': `name: c\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: sluice\n    provider: ${provider}\n    model: ${model}\n    apiBase: ${apiBase}\n    apiKey: none\n    roles: [chat]\n` })),
});

const opencode = { $schema: 'https://opencode.ai/config.json', provider: { sluice: { npm: '@ai-sdk/openai-compatible', name: 'sluice', options: { baseURL: V1 }, models: { [model]: { name: model } } } }, small_model: 'sluice/' + model, autoupdate: false, share: 'disabled' };
row('opencode', ['opencode-ai'], {
  chat: async () => words(await run('opencode', () => ['run', '-m', 'sluice/' + model, question], () => ({}), { 'opencode.json': JSON.stringify(opencode) })),
});
row('Cline CLI', ['cline'], {
  chat: async () => words(await run('cline', () => ['-P', 'openai-compatible', '-m', model, '-t', '150', question], () => ({}), {}, ['auth', '-p', 'openai-compatible', '-k', 'none', '-m', model, '-b', V1])),
});
for (const [api, baseUrl] of [['openai-completions', V1], ['openai-responses', V1], ['anthropic-messages', BASE]]) {
  const models = [{ id: model, name: model, reasoning: false, input: ['text'], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 49152, maxTokens: 512 }];
  row(`pi-coding-agent (${api})`, ['@mariozechner/pi-coding-agent'], {
    chat: async () => paris(await run('pi', () => ['-p', '--no-session', '--provider', 'sluice', '--model', model, question], (home) => ({ PI_OFFLINE: '1', PI_CODING_AGENT_DIR: home }), { 'models.json': JSON.stringify({ providers: { sluice: { baseUrl, api, apiKey: 'none', models } } }) })),
  });
}
row('opencommit (ollama)', ['opencommit'], {
  chat: async () => words(await run('oco', () => ['--yes'], () => ({ OCO_AI_PROVIDER: 'ollama', OCO_MODEL: model, OCO_API_URL: BASE, OCO_API_KEY: 'none', OCO_GITPUSH: 'false', GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.org', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.org' }), { 'a.txt': 'a\n' }, 'git init -q . && git add a.txt')),
});
row('@portkey-ai/gateway', ['@portkey-ai/gateway'], Object.fromEntries([['openai', V1], ['ollama', BASE], ['anthropic', V1]].map(([provider, host]) => [provider, async () => {
  const port = 20000 + Math.floor(Math.random() * 20000), gateway = spawn(join(here, 'node_modules/.bin/gateway'), [`--port=${port}`, '--headless'], { stdio: 'ignore' });
  try {
    const ask = () => fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(asked), headers: { 'content-type': 'application/json', authorization: 'Bearer none', 'x-portkey-provider': provider, 'x-portkey-custom-host': host } });
    let answer;
    for (let tries = 0; !answer; tries++) try { answer = await ask(); } catch (e) { if (tries > 100) throw e; await new Promise((ok) => setTimeout(ok, 100)); }
    paris((await answer.json()).choices?.[0].message.content);
  } finally { gateway.kill(); }
}])));
row('genkitx-ollama', ['genkitx-ollama', 'genkit'], {
  chat: async (m) => paris((await m.genkit.genkit({ plugins: [m['genkitx-ollama'].ollama({ models: [{ name: model, type: 'chat' }], serverAddress: BASE })] }).generate({ model: 'ollama/' + model, prompt: question })).text),
  embed: async (m) => embedModel && assert((await m.genkit.genkit({ plugins: [m['genkitx-ollama'].ollama({ embedders: [{ name: embedModel, dimensions: 8 }], serverAddress: BASE })] }).embed({ embedder: 'ollama/' + embedModel, content: 'a' })).length === 1, 'not a vector'),
});

const versionOf = (pack) => { try { return JSON.parse(readFileSync(join(here, 'node_modules', pack, 'package.json'))).version; } catch { return ''; } };
let failures = 0, seen = 0, absent = 0;
for (const r of rows) {
  if (wanted.length && !r.packages.some((p) => wanted.includes(p))) continue;
  const versions = r.packages.map(versionOf);
  if (versions.includes('')) { absent++; continue; }
  seen++;
  const m = {}, held = [], why = [], notes = [];
  try { if (Object.values(r.checks).some((check) => check.length)) for (const p of r.packages) m[p] = await import(p); } catch (e) { why.push(`it does not load: ${e.message.split('\n')[0]}`); }
  for (const [name, check] of why.length ? [] : Object.entries(r.checks)) {
    let timer;
    const limit = new Promise((_, no) => { timer = setTimeout(() => no(new Error('no answer in 180 s')), 180_000); });
    try { await Promise.race([check(m), limit]); held.push(name); } catch (e) { if (r.own[name]) notes.push(`${name}, its own fault: ${r.own[name]}`); else why.push(`${name}: ${String(e?.message ?? e).replaceAll(/\s+/g, ' ').slice(0, 240)}`); }
    clearTimeout(timer);
  }
  if (why.length) failures++;
  console.log([why.length ? 'partial' : 'full', `${r.name} ${versions[0] === versions.at(-1) ? versions[0] : versions.slice(0, 2).join(' + ')}`, held.join(', '), ...why, ...notes].join(' | '));
}
console.log(`${seen - failures} full, ${failures} partial, ${absent} not installed`);
process.exit(failures ? 1 : 0);
