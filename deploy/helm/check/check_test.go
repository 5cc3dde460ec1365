package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	strict "sigs.k8s.io/yaml"
)

const chartDir = "../sluice"

// everything turns on all that the chart has.
const everything = `
replicas: 3
models: [{name: chat, model: "qwen3:8b"}]
settings: {ram: 48G, parallel: 64, lora: [a=/models/a, b=/models/b], share-prefix: true}
auth: {existingSecret: keys}
tls: {existingSecret: cert}
imagePullSecrets: [{name: registry}]
persistence: {storageClass: fast}
resources: {limits: {nvidia.com/gpu: 1}}
nodeSelector: {disk: nvme}
tolerations: [{key: gpu, operator: Exists}]
affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
podAnnotations: {a: b}
podLabels: {c: d}
env: [{name: SLUICE_LOG, value: info}]
service: {annotations: {e: f}}
serviceAccount: {annotations: {g: h}}
cluster: {enabled: true, name: home, existingSecret: passes}
router: {metrics: true, events: true}
serviceMonitor: {enabled: true, labels: {release: prometheus}, keySecret: {name: keys, key: monitor}}
`

// rendered is what the chart makes, each decoded strictly into the type that Kubernetes has for it.
type rendered struct {
	sets     []apps.StatefulSet
	services map[string]core.Service
	accounts []core.ServiceAccount
	monitors []monitoring.ServiceMonitor
	notes    string
}

func render(values string) (r rendered, err error) {
	c, err := loader.Load(chartDir)
	if err != nil {
		return r, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return r, err
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "sluice", Namespace: "models", IsInstall: true},
		chartutil.DefaultCapabilities)
	if err != nil {
		return r, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return r, err
	}
	r.services = map[string]core.Service{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			r.notes = files[name]
			continue
		}
		for _, text := range strings.Split(files[name], "\n---\n") {
			if err := r.take([]byte(text)); err != nil {
				return r, fmt.Errorf("%s: %w\n%s", name, err, text)
			}
		}
	}
	return r, nil
}

func (r *rendered) take(text []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := strict.Unmarshal(text, &head); err != nil {
		return err
	}
	switch head.APIVersion + " " + head.Kind {
	case "apps/v1 StatefulSet":
		r.sets = append(r.sets, apps.StatefulSet{})
		return strict.UnmarshalStrict(text, &r.sets[len(r.sets)-1])
	case "v1 Service":
		var s core.Service
		err := strict.UnmarshalStrict(text, &s)
		r.services[s.Name] = s
		return err
	case "v1 ServiceAccount":
		r.accounts = append(r.accounts, core.ServiceAccount{})
		return strict.UnmarshalStrict(text, &r.accounts[len(r.accounts)-1])
	case "monitoring.coreos.com/v1 ServiceMonitor":
		r.monitors = append(r.monitors, monitoring.ServiceMonitor{})
		return strict.UnmarshalStrict(text, &r.monitors[len(r.monitors)-1])
	case " ":
		return nil // comments alone
	}
	return fmt.Errorf("%s %s is not expected", head.APIVersion, head.Kind)
}

// TestLint: helm lint finds nothing worse than that there is no icon.
func TestLint(t *testing.T) {
	for _, values := range []string{"auth: {open: true}", everything} {
		given, err := chartutil.ReadValues([]byte(values))
		require.NoError(t, err)
		for _, m := range lint.All(chartDir, given, "models", true).Messages {
			require.LessOrEqual(t, m.Severity, support.InfoSev, "%s", m)
			require.ErrorContains(t, m.Err, "icon is recommended")
		}
	}
}

// TestLeast: what a chart without settings makes, but for the word that everybody may ask.
func TestLeast(t *testing.T) {
	r, err := render("auth: {open: true}")
	require.NoError(t, err)
	require.Len(t, r.sets, 1)
	require.Len(t, r.services, 2)
	require.Len(t, r.accounts, 1)
	require.Empty(t, r.monitors)
	require.Contains(t, r.notes, "http://sluice.models.svc:8080/v1")
	set := r.sets[0].Spec
	require.EqualValues(t, 1, *set.Replicas)
	require.Equal(t, set.Selector.MatchLabels, r.services["sluice"].Spec.Selector)
	for k, v := range set.Selector.MatchLabels {
		require.Equal(t, v, set.Template.Labels[k])
	}
	pod := set.Template.Spec
	c := pod.Containers[0]
	require.Equal(t, []string{"serve", "--addr=:8080", "--stored", "--open", "--state=/models/state"}, c.Args)
	require.Equal(t, "sluice:0.1.0", c.Image)
	for _, p := range []*core.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		require.Equal(t, "/health", p.HTTPGet.Path)
		require.Equal(t, core.URISchemeHTTP, p.HTTPGet.Scheme)
	}
	require.EqualValues(t, 3600, c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold)
	require.EqualValues(t, 10, c.Lifecycle.PreStop.Sleep.Seconds)
	require.Greater(t, *pod.TerminationGracePeriodSeconds, c.Lifecycle.PreStop.Sleep.Seconds+10, "the server's own patience")
	require.False(t, *pod.AutomountServiceAccountToken)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	claim := set.VolumeClaimTemplates[0]
	require.Equal(t, "models", claim.Name)
	require.Equal(t, "100Gi", claim.Spec.Resources.Requests.Storage().String())
	mounted(t, &set)
}

// mounted checks that each mount has its volume.
func mounted(t *testing.T, set *apps.StatefulSetSpec) {
	var volumes, mounts []string
	for _, v := range set.Template.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, v := range set.VolumeClaimTemplates {
		volumes = append(volumes, v.Name)
	}
	for _, m := range set.Template.Spec.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	require.ElementsMatch(t, volumes, mounts)
}

// TestEverything: all that the chart has, together.
func TestEverything(t *testing.T) {
	r, err := render(everything)
	require.NoError(t, err)
	set := r.sets[0].Spec
	require.EqualValues(t, 3, *set.Replicas)
	c := set.Template.Spec.Containers[0]
	require.Equal(t, []string{"serve", "--addr=:8080", "-m=chat=qwen3:8b", "--pull", "--api-key-file=/etc/sluice/keys/keys",
		"--tls-cert=/etc/sluice/tls/tls.crt", "--tls-key=/etc/sluice/tls/tls.key", "--state=/models/state", "--cluster=home",
		"--pass=/etc/sluice/passes/$(POD_NAME).pem", "--member-addr=$(POD_IP):7777",
		"--join=sluice-0.sluice-pods.models.svc:7777", "--join=sluice-1.sluice-pods.models.svc:7777",
		"--join=sluice-2.sluice-pods.models.svc:7777", "--metrics-compat=vllm", "--kv-events=tcp://*:5557",
		"--kv-events-replay=tcp://*:5558", "--kv-events-topic=kv@$(POD_IP)@chat", "--lora=a=/models/a", "--lora=b=/models/b",
		"--parallel=64", "--ram=48G", "--share-prefix=true"}, c.Args)
	require.Equal(t, core.URISchemeHTTPS, c.LivenessProbe.HTTPGet.Scheme)
	require.Equal(t, "1", c.Resources.Limits.Name("nvidia.com/gpu", "").String())
	require.Equal(t, "fast", *set.VolumeClaimTemplates[0].Spec.StorageClassName)
	mounted(t, &set)
	ports := map[string]int32{}
	for _, p := range r.services["sluice-pods"].Spec.Ports {
		ports[p.Name] = p.Port
		require.True(t, slices.ContainsFunc(c.Ports, func(x core.ContainerPort) bool { return x.Name == p.TargetPort.StrVal }), p.Name)
	}
	require.Equal(t, map[string]int32{"http": 8080, "members": 7777, "kv-events": 5557, "kv-replay": 5558}, ports)
	require.True(t, r.services["sluice-pods"].Spec.PublishNotReadyAddresses)
	m := r.monitors[0].Spec
	require.Equal(t, "https", strings.ToLower(string(*m.Endpoints[0].Scheme)))
	require.Equal(t, "keys", m.Endpoints[0].Authorization.Credentials.Name)
	for k, v := range m.Selector.MatchLabels {
		require.Equal(t, v, r.services["sluice-pods"].Labels[k])
	}
	require.NotEqual(t, "pods", r.services["sluice"].Labels["app.kubernetes.io/component"], "each pod is read once")
}

// TestOther: a claim for all, a router that is called, an account that is there.
func TestOther(t *testing.T) {
	r, err := render(`
auth: {open: true}
models: [{name: m, model: /models/m.gguf}]
persistence: {existingClaim: shared}
router: {events: true, call: "tcp://router.llm-d.svc:5557"}
serviceAccount: {create: false, name: mine}
image: {repository: registry.example.org/sluice, tag: v2}
`)
	require.NoError(t, err)
	set := r.sets[0].Spec
	require.Empty(t, set.VolumeClaimTemplates)
	mounted(t, &set)
	require.Equal(t, "mine", set.Template.Spec.ServiceAccountName)
	require.Empty(t, r.accounts)
	c := set.Template.Spec.Containers[0]
	require.Equal(t, "registry.example.org/sluice:v2", c.Image)
	require.Contains(t, c.Args, "--kv-events=tcp://router.llm-d.svc:5557")
	require.Contains(t, c.Args, "--state=/models/state-$(POD_NAME)")
	require.Len(t, r.services["sluice-pods"].Spec.Ports, 2)
}

// TestRefuses: what cannot work is said before anything is installed.
func TestRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"{}": "auth: name a Secret of keys",
		"{auth: {open: true}, cluster: {enabled: true}}":    "cluster.existingSecret: want a Secret of passes",
		"{auth: {open: true}, router: {events: true}}":      "router.events: events do not name the model",
		"{auth: {open: true}, models: [{model: qwen3:8b}]}": "models: each has a name",
	} {
		_, err := render(values)
		require.ErrorContains(t, err, want, values)
	}
}
