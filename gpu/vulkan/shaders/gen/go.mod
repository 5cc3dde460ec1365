module github.com/sluice-ai/sluice/gpu/vulkan/shaders/gen

go 1.26.0

require github.com/klauspost/compress v1.20.0
