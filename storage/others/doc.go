// Package others finds the models that other programs keep on this machine: Ollama, LM Studio, and what uses Hugging
// Face's cache.
//
// It reads names, sizes and manifests, and changes nothing. What it finds is not trusted: manifests are bounded, links
// that leave a program's folder are not followed, and what cannot be used is listed with the reason.
package others
