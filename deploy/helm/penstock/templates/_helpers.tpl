{{- define "penstock.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "penstock.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "penstock.labels" -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "penstock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "penstock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "penstock.storeEnvironment" -}}
{{- if eq .Values.store "postgres" }}
- name: PENSTOCK_STORE_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.postgres.existingSecret }}, key: url}
{{- end }}
{{- end -}}

{{- define "penstock.toml" -}}
{{- if not (hasKey .Values.server.settings "server") }}
[server]
drain_ms = "{{ .Values.server.drainSeconds }}s"
{{- end }}
{{- if and .Values.autoscaler.enabled (eq .Values.store "sqlite") }}
[scaling]
fleets_file = "/etc/penstock/fleets.toml"
{{- end }}
{{- range $section, $fields := .Values.server.settings }}
[{{ $section }}]
{{- range $name, $value := $fields }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- end -}}
