module github.com/sluice-ai/sluice/cpu/gen

go 1.26.0
