// The server, by its public API. Addresses are relative: behind a proxy the page may lie deeper.

const keyName = 'sluice-key';

// Refusal is an answer that is none: what the server said, and its status; 0 where it did not answer.
export class Refusal extends Error {
  constructor(status, text, code) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

export const key = {
  get: () => sessionStorage.getItem(keyName) || localStorage.getItem(keyName) || '',
  set(value, remember) {
    sessionStorage.setItem(keyName, value);
    if (remember) localStorage.setItem(keyName, value);
    else localStorage.removeItem(keyName);
  },
};

// ask sends a request and returns the response, or throws a Refusal.
async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (key.get()) headers.Authorization = 'Bearer ' + key.get();
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: 'no-store' });
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Refusal(0, 'The server does not answer. Is sluice still running?');
  }
  if (response.ok) return response;
  const text = await response.text();
  let error = {};
  try {
    error = JSON.parse(text).error || {};
  } catch { /* not ours: a proxy's, perhaps */ }
  if (typeof error === 'string') error = { message: error }; // as Ollama's API says it
  throw new Refusal(response.status, error.message || `The server answered with status ${response.status}.`, error.code);
}

export async function models() {
  return (await (await ask('v1/models')).json()).data;
}

export async function inside() {
  return (await ask('debug/actors')).json();
}

// tell asks for something that is done to a model, and waits until it is.
export async function tell(path, body, method = 'POST', signal = undefined) {
  return ask(path, { method, signal, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}

// pull has the server download a model, and yields how far it is: {status, total, completed}, in bytes.
export async function* pull(name, signal) {
  const reader = (await tell('api/pull', { model: name }, 'POST', signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? '')).split('\n');
    rest = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const p = JSON.parse(line);
      if (p.error) throw new Refusal(200, p.error);
      if (p.status === 'success') return;
      yield p;
    }
    if (done) throw new Refusal(0, 'The download broke off: the connection to the server was lost.');
  }
}

// health says why the server cannot answer yet; null: it can.
export async function health() {
  try {
    await ask('health');
    return null;
  } catch (e) {
    return e;
  }
}

// chat asks for an answer and yields the events of its stream, each an object.
export async function* chat(body, signal) {
  const response = await ask('v1/chat/completions', {
    method: 'POST', signal, headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true, return_progress: true, stream_options: { include_usage: true } }),
  });
  for await (const data of events(response.body)) {
    if (data === '[DONE]') return;
    const event = JSON.parse(data);
    if (event.error) throw new Refusal(200, event.error.message, event.error.code);
    yield event;
  }
  throw lost();
}

// paint asks for a picture and yields the events of its stream: previews, then the picture.
export async function* paint(body, signal) {
  const response = await tell('v1/images/generations', { ...body, stream: true, partial_images: 3 }, 'POST', signal);
  for await (const data of events(response.body)) {
    const event = JSON.parse(data);
    if (event.error) throw new Refusal(200, event.error.message, event.error.code);
    yield event;
    if (event.type.endsWith('.completed')) return;
  }
  throw new Refusal(0, 'The picture broke off: the connection to the server was lost.');
}

// painted says how far the newest picture of this key is.
export async function painted() {
  return (await ask('sdapi/v1/progress?skip_current_image=true')).json();
}

const lost = () => new Refusal(0, 'The answer broke off: the connection to the server was lost.');

// events reads server-sent events: the data of each. broken makes an error of one of the connection.
export async function* events(body, broken = lost) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const whole = (rest + value).split(/\r?\n\r?\n/);
      rest = whole.pop();
      for (const event of whole) {
        const data = event.split(/\r?\n/).filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).replace(/^ /, ''));
        if (data.length) yield data.join('\n');
      }
    }
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw broken(e);
  } finally {
    reader.cancel().catch(() => {});
  }
}
