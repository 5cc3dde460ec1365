package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChartFlags: flags that the chart for Kubernetes gives are flags of serve. Helm itself is asked by make chart.
func TestChartFlags(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/sluice/templates/_helpers.tpl")
	require.NoError(t, err)
	flags := regexp.MustCompile(`(?m)^- (--[a-z-]+)`).FindAllSubmatch(text, -1)
	require.Greater(t, len(flags), 12)
	help := sluice("", "serve", "--help")
	require.Equal(t, exitDone, help.code)
	for _, f := range flags {
		require.Regexp(t, `(?m)^ +(-\w, )?`+string(f[1])+`\b`, help.stdout)
	}
}
