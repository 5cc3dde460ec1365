// Package kvevents tells routers of other projects (llm-d, NVIDIA Dynamo, AIBrix, vLLM's production stack) what prompts
// can begin with here, as vLLM does: batches of events in MessagePack, published on a ZeroMQ PUB socket, with those
// that were missed from a ROUTER socket. Not here: which blocks there are (stages/kv).
package kvevents
