// An answer as it arrives: events of the stream become a message's fields.

// body is a request for an answer to messages, with the settings that were set, and tools besides those that they have.
export function body(settings, model, messages, tools = []) {
  const out = { messages };
  if (model) out.model = model;
  for (const name of ['temperature', 'top_p', 'top_k', 'min_p', 'repeat_penalty', 'presence_penalty', 'frequency_penalty',
    'max_tokens', 'seed']) {
    if (settings[name] !== '') out[name] = Number(settings[name]);
  }
  const stop = settings.stop.split('\n').filter((line) => line !== '');
  if (stop.length) out.stop = stop;
  if (settings.thinking) out.chat_template_kwargs = { enable_thinking: settings.thinking === 'on' };
  const own = settings.tools.trim() ? JSON.parse(settings.tools) : [];
  const others = tools.filter((t) => !own.some((o) => o.function?.name === t.function.name));
  if (settings.tools.trim() || others.length) out.tools = [...own, ...others];
  return out;
}

// reading says how far the server has read the prompt, if an event does.
export function reading(event) {
  const p = event.prompt_progress;
  return p && (p.processed < p.total ? `Reading: ${Math.round(100 * p.processed / p.total)} % of ${p.total} tokens` : '');
}

// Growing takes events for a message and counts. now is a clock in milliseconds.
export class Growing {
  constructor(message, now = () => performance.now()) {
    this.message = message;
    this.now = now;
    this.began = now();
    this.firstAt = 0;
    this.pieces = 0;
    this.had = message.content ? message.stats?.tokens || 0 : 0; // tokens of an answer that is continued
    message.stats = this.had ? { had: this.had } : {};
  }

  take(event) {
    this.message.changed = Date.now();
    const choice = event.choices?.[0];
    if (choice?.delta) this.grow(choice.delta);
    if (choice?.finish_reason) this.message.ended = choice.finish_reason;
    if (event.timings) this.time(event.timings);
    if (event.prompt_progress) this.message.stats.prompt = event.prompt_progress.total;
    if (event.usage) {
      this.message.stats.tokens = this.had + event.usage.completion_tokens;
      this.message.stats.prompt = event.usage.prompt_tokens;
      this.message.stats.cached = event.usage.prompt_tokens_details?.cached_tokens || 0;
    }
  }

  grow(delta) {
    const m = this.message;
    const thought = delta.reasoning_content || delta.reasoning || '';
    if (!thought && !delta.content && !delta.tool_calls) return;
    const at = this.now();
    if (!this.firstAt) {
      this.firstAt = at;
      m.stats.first = (at - this.began) / 1000;
    }
    this.pieces++;
    m.stats.tokens = this.had + this.pieces;
    if (at > this.firstAt) m.stats.rate = (this.pieces - 1) / ((at - this.firstAt) / 1000);
    if (thought) {
      m.thought = (m.thought || '') + thought;
      m.stats.thought = (at - this.began) / 1000;
    }
    m.content += delta.content || '';
    for (const part of delta.tool_calls || []) this.call(part);
  }

  call(part) {
    const calls = this.message.calls ??= [];
    const call = calls[part.index ?? calls.length] ??= { id: '', name: '', arguments: '' };
    call.id = part.id || call.id;
    call.name += part.function?.name || '';
    call.arguments += part.function?.arguments || '';
  }

  // time takes the server's own measure, which the network does not blur.
  time(timings) {
    this.message.stats.rate = timings.predicted_per_second;
    this.message.stats.tokens = this.had + timings.predicted_n;
    this.message.stats.prompt = timings.prompt_n + (timings.cache_n || 0);
    this.message.stats.cached = timings.cache_n || 0;
  }
}
