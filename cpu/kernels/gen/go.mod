module github.com/sluice-ai/sluice/cpu/kernels/gen

go 1.26.0
