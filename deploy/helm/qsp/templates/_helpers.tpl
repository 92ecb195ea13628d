{{- define "qsp.name" -}}
{{- if contains "qsp" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-qsp" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "qsp.selector" -}}
app.kubernetes.io/name: qsp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "qsp.labels" -}}
{{ include "qsp.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "qsp.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "qsp.scheme" -}}
{{ if .Values.secrets.tls }}https{{ else }}http{{ end }}
{{- end }}
