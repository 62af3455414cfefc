{{/* Name of the chart, shortened to what a label may hold. */}}
{{- define "karpenter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of the objects: release and chart, or the release alone where it says the chart's name already. */}}
{{- define "karpenter.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels by which the pods are found; a Deployment can never change them. */}}
{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "karpenter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "karpenter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Metadata of an object, from a list: the root, the name, the namespace ("" for cluster-scoped objects), and labels and
annotations of this object alone.
*/}}
{{- define "karpenter.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
{{- with index . 2 }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "karpenter.labels" $root | nindent 2 }}
  {{- with index . 3 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (index . 4) $root.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "karpenter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "karpenter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "karpenter.credentialsSecret" -}}
{{- default "karpl-credentials" .Values.credentialsSecretRef }}
{{- end }}

{{- define "karpenter.image" -}}
{{- $image := .Values.controller.image -}}
{{- printf "%s:%s" $image.repository (default (printf "v%s" .Chart.AppVersion) $image.tag) -}}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* FEATURE_GATES, like NodeRepair=false,StaticCapacity=true. */}}
{{- define "karpenter.featureGates" -}}
{{- $gates := list -}}
{{- range $name, $on := .Values.settings.featureGates -}}
{{- $gates = append $gates (printf "%s%s=%t" (substr 0 1 $name | upper) (substr 1 -1 $name) $on) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end }}

{{/* "true" when DRA is on; settings.dra may be missing, as after an upgrade with reused values. */}}
{{- define "karpenter.draEnabled" -}}
{{- $dra := default (dict) .Values.settings.dra -}}
{{- if eq (get $dra "enabled" | toString) "true" -}}true{{- end -}}
{{- end }}

{{/* The affinity, with the pods' labels wherever a pod affinity term selects no pods. */}}
{{- define "karpenter.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- $selector := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- $terms := default (dict) (get $affinity $kind) -}}
{{- range $term := index $terms "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- if not $term.labelSelector -}}{{- $_ := set $term "labelSelector" $selector -}}{{- end -}}
{{- end -}}
{{- range $weighted := index $terms "preferredDuringSchedulingIgnoredDuringExecution" -}}
{{- $term := $weighted.podAffinityTerm -}}
{{- if not $term.labelSelector -}}{{- $_ := set $term "labelSelector" $selector -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end }}

{{/* The topology spread constraints, likewise. */}}
{{- define "karpenter.topologySpreadConstraints" -}}
{{- $selector := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) -}}
{{- $constraints := list -}}
{{- range $constraint := .Values.topologySpreadConstraints -}}
{{- $constraints = append $constraints (merge (dict) $constraint (dict "labelSelector" $selector)) -}}
{{- end -}}
{{- toYaml $constraints -}}
{{- end }}
