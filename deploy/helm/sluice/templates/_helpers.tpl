{{- define "sluice.name" -}}
{{- if contains "sluice" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-sluice" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "sluice.account" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "sluice.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- /* Flags of sluice serve, one in each line. What cannot work together is refused here. */ -}}
{{- define "sluice.flags" -}}
- serve
- --addr=:8080
{{- range .Values.models }}
- -m={{ required "models: each has a name" .name }}={{ required "models: each has a model" .model }}
{{- else }}
- --stored
{{- end }}
{{- if .Values.models }}
- --pull
{{- end }}
{{- if .Values.auth.existingSecret }}
- --api-key-file=/etc/sluice/keys/keys
{{- else if .Values.auth.open }}
- --open
{{- else }}
{{- fail "auth: name a Secret of keys (auth.existingSecret), or let everybody ask who reaches the service (auth.open: true)" }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- --tls-cert=/etc/sluice/tls/tls.crt
- --tls-key=/etc/sluice/tls/tls.key
{{- end }}
{{- if .Values.persistence.state }}
- --state=/models/state{{ if .Values.persistence.existingClaim }}-$(POD_NAME){{ end }}
{{- end }}
{{- with .Values.cluster }}
{{- if .enabled }}
- --cluster={{ .name }}
- --pass=/etc/sluice/passes/$(POD_NAME).pem
- --member-addr=$(POD_IP):{{ .port }}
{{- range $i := until (int $.Values.replicas) }}
- --join={{ include "sluice.name" $ }}-{{ $i }}.{{ include "sluice.name" $ }}-pods.{{ $.Release.Namespace }}.svc:{{ $.Values.cluster.port }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.router }}
{{- if .metrics }}
- --metrics-compat=vllm
{{- end }}
{{- if .events }}
{{- if ne (len $.Values.models) 1 }}
{{- fail "router.events: events do not name the model: serve one alone (models)" }}
{{- end }}
- --kv-events={{ default (printf "tcp://*:%d" (int .eventsPort)) .call }}
- --kv-events-replay=tcp://*:{{ .replayPort }}
- --kv-events-topic=kv@$(POD_IP)@{{ (first $.Values.models).name }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
- --{{ $name }}={{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sluice.health" -}}
path: /health
port: http
scheme: {{ empty .Values.tls.existingSecret | ternary "HTTP" "HTTPS" }}
{{- end }}
