// Pictures by OpenAI's own client: whole, streamed with previews, of a picture, and refused. BASE_URL is the server; a
// line `ok NAME` or `not ok NAME: why` for each.
import OpenAI, { toFile } from 'openai';

const client = new OpenAI({ baseURL: process.env.BASE_URL + '/v1', apiKey: 'none', maxRetries: 0 });
const common = { model: 'gpt-image-1', prompt: 'a cat', size: '64x32' };

function assert(cond, why) { if (!cond) throw new Error(why); }
let failed = 0;
async function check(name, f) {
  try { await f(); console.log(`ok ${name}`); } catch (e) { failed++; console.log(`not ok ${name}: ${String(e?.stack ?? e).replaceAll('\n', ' ').slice(0, 500)}`); }
}
// sides are those that the header of a PNG says.
function sides(text) {
  const data = Buffer.from(text, 'base64');
  assert(data.subarray(1, 4).toString() === 'PNG', 'no PNG');
  return `${data.readUInt32BE(16)}x${data.readUInt32BE(20)}`;
}
async function events(stream) {
  const all = [];
  for await (const e of stream) all.push(e);
  return all;
}

let made;
await check('generate', async () => {
  const got = await client.images.generate({ ...common, n: 2 });
  assert(got.data.length === 2 && got.data.every((d) => sides(d.b64_json) === '64x32'), JSON.stringify(got).slice(0, 200));
  assert(got.output_format === 'png' && got.size === '64x32' && got.usage.output_tokens > 0, JSON.stringify(got.usage));
  made = Buffer.from(got.data[0].b64_json, 'base64');
});
await check('generate.stream', async () => {
  const all = await events(await client.images.generate({ ...common, stream: true, partial_images: 2 }));
  assert(all.map((e) => e.type.split('.')[1]).join() === 'partial_image,partial_image,completed', all.map((e) => e.type).join());
  assert(all.slice(0, 2).every((e, i) => e.partial_image_index === i), 'numbers of previews');
  assert(all.every((e) => sides(e.b64_json) === '64x32' && e.created_at > 0), 'sides');
});
await check('edit', async () => {
  const got = await client.images.edit({ model: 'gpt-image-1', prompt: 'a dog', image: await toFile(made, 'in.png', { type: 'image/png' }) });
  assert(sides(got.data[0].b64_json) === '64x32', 'the size is not that of the picture');
});
await check('edit.stream', async () => {
  const all = await events(await client.images.edit({ ...common, image: await toFile(made, 'in.png', { type: 'image/png' }), stream: true }));
  assert(all.map((e) => e.type).join() === 'image_edit.completed', all.map((e) => e.type).join());
});
await check('refused', async () => {
  try { await client.images.generate({ ...common, size: '1000x1000' }); } catch (e) {
    return assert(e instanceof OpenAI.BadRequestError && e.param === 'size' && /multiples of 16/.test(e.message), String(e));
  }
  assert(false, 'a size that cannot be');
});
process.exit(failed ? 1 : 0);
