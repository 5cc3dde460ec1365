package models

// Flag is -m, which all commands spell the same way.
type Flag struct {
	Model string `short:"m" placeholder:"MODEL" help:"Model file (GGUF), the folder of a model (safetensors), or the name of one that sluice pull has got, or sluice list --all shows. Without it: the small embedded model."`
}
