module github.com/sluice-ai/sluice/gpu/vulkan/shaders/gen

go 1.26.0
