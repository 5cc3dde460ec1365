package main

type doctorCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (doctorCmd) examples() [2]string {
	return [2]string{`sluice doctor`, `sluice doctor --json`}
}

func (c *doctorCmd) Run(e *env) error { return nil }
