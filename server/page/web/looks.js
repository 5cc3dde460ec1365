// What a server did between two looks at it (GET /debug/actors): rates and means, as sluice top shows them. No elements
// here.

// between returns what is shown of two looks.
export function between(before, now) {
  if (!before || now.uptime_seconds <= before.uptime_seconds) before = null; // started again: nothing to compare with
  const took = before ? now.uptime_seconds - before.uptime_seconds : 0;
  const per = (a, b) => (took > 0 ? Math.max(0, (a ?? 0) - (b ?? 0)) / took : 0);
  const had = new Map((before?.models ?? []).map((m) => [m.name, m]));
  return {
    uptime: now.uptime_seconds,
    models: now.models.map((m) => model(m, had.get(m.name) ?? (before ? {} : m), per)),
    actors: actors(now, before, per),
    defects: now.dead_letters + now.unexpected_messages,
  };
}

// device is where a device's time went, as shares by cause; null: it was not there, or is another one.
function device(now, before) {
  const took = now && before ? now.uptime_seconds - before.uptime_seconds : 0;
  if (!(took > 0)) return null;
  const share = (a, b) => Math.max(0, (a ?? 0) - (b ?? 0)) / took;
  const shares = { computing: share(now.computing_seconds, before.computing_seconds) };
  for (const [cause, seconds] of Object.entries(now.idle_seconds ?? {})) shares[cause] = share(seconds, before.idle_seconds?.[cause]);
  return shares;
}

const mean = (sum, n) => (n > 0 ? sum / n : 0);

function model(m, was, per) {
  const since = (name) => (m[name] ?? 0) - (was[name] ?? 0);
  const found = since('experts_found');
  return {
    name: m.name,
    state: m.state,
    failure: m.failure,
    waitedFor: m.waited_for,
    device: device(m.device, was.device),
    deviceId: m.device?.id,
    running: m.sequences_running,
    waiting: m.sequences_waiting,
    rate: per(m.generated_tokens, was.generated_tokens),
    prompts: per(m.prompt_tokens, was.prompt_tokens),
    steps: per(m.steps, was.steps),
    rows: mean(since('rows'), since('steps')),
    first: mean(since('first_token_seconds'), since('first_tokens')),
    gap: mean(since('token_gap_seconds'), since('token_gaps')),
    blocks: { used: m.kv_blocks_used, cached: m.kv_blocks_cached, free: m.kv_blocks_free },
    weights: m.weight_bytes ?? null,
    streamed: per(m.streamed_bytes, was.streamed_bytes),
    streams: m.streamed_bytes > 0,
    experts: found + since('experts_missed') > 0 ? mean(found, found + since('experts_missed')) : null,
    failed: m.steps_failed,
  };
}

// actors are rows, those that models share first. Sessions come and go with requests: they are one row.
function actors(now, before, per) {
  const all = (look) => [...(look?.actors ?? []), ...(look?.models ?? []).flatMap((m) => m.actors ?? [])];
  const was = new Map(all(before).map((a) => [a.id, a]));
  const rows = [];
  const take = (list, credits) => {
    const sessions = [];
    for (const a of list) {
      if (a.id.includes('/sessions/')) sessions.push(a);
      else rows.push(row(a.id, [a], was, credits, per));
    }
    if (sessions.length) {
      rows.push(row(sessions[0].id.replace(/\/sessions\/.*/, '/sessions/*'), sessions, was, [], per));
    }
  };
  const shared = now.models.flatMap((m) => m.credits ?? []); // models send to the house's actors, too
  take(now.actors ?? [], [...(now.credits ?? []), ...shared]);
  for (const m of now.models) take(m.actors ?? [], m.credits ?? []);
  return rows;
}

function row(id, list, was, credits, per) {
  const sum = (name) => list.reduce((n, a) => n + a[name], 0);
  const before = (name) => list.reduce((n, a) => n + (was.get(a.id)?.[name] ?? 0), 0);
  const known = was.size > 0;
  const handled = sum('messages') - before('messages');
  return {
    id: decodeURIComponent(id),
    count: list.length,
    mailbox: sum('mailbox'),
    peak: Math.max(...list.map((a) => a.mailbox_peak)),
    busy: known ? per(sum('busy_seconds'), before('busy_seconds')) : 0,
    rate: known ? per(sum('messages'), before('messages')) : 0,
    wait: known ? mean(sum('wait_seconds') - before('wait_seconds'), handled) : 0,
    refused: sum('refused'),
    restarts: sum('restarts'),
    credits: credits.filter((c) => c.to === kind(id)),
  };
}

// kind is what edges call an actor.
function kind(id) {
  return /^[^/]*\/model\/[^/]*$/.test(id) ? 'model' : id.slice(id.lastIndexOf('/') + 1);
}
