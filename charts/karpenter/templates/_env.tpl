{{/* Environment of the controller, without the user's own entries, which come last and win. */}}
{{- define "karpenter.env" -}}
{{- $settings := .Values.settings -}}
- name: LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
- name: LOG_OUTPUT_PATHS
  value: {{ join "," .Values.logOutputPaths | quote }}
- name: LOG_ERROR_OUTPUT_PATHS
  value: {{ join "," .Values.logErrorOutputPaths | quote }}
- name: METRICS_PORT
  value: {{ .Values.controller.metrics.port | quote }}
- name: HEALTH_PROBE_PORT
  value: {{ .Values.controller.healthProbe.port | quote }}
{{- if dig "requests" "cpu" "" (default (dict) .Values.controller.resources) }}
{{- /* Decides how many objects are worked on at a time. */}}
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: controller
      divisor: 1m
      resource: requests.cpu
{{- end }}
- name: FEATURE_GATES
  value: {{ include "karpenter.featureGates" . | quote }}
{{- /* Each is left out only where it is unset or empty: 0 and false are answers. */}}
{{- $optional := list
  (list "BATCH_MAX_DURATION" $settings.batchMaxDuration)
  (list "BATCH_IDLE_DURATION" $settings.batchIdleDuration)
  (list "CLUSTER_NAME" $settings.clusterName)
  (list "CLUSTER_ENDPOINT" $settings.clusterEndpoint)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent)
  (list "KARPENTER_MODE" $settings.mode)
  (list "LINODE_DEBUG" .Values.linodeDebug)
  (list "LKE_CREATE_DEADLINE" $settings.lkeCreateDeadline)
  (list "LKE_TAG_VERIFICATION_TIMEOUT" $settings.lkeTagVerificationTimeout)
  (list "LKE_RETRY_DELAY" $settings.lkeRetryDelay)
}}
{{- range $optional }}
{{- $value := index . 1 }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- name: {{ index . 0 }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- with $settings.schedulerConfig }}
- name: SCHEDULER_CONFIG
  value: {{ ternary . (toJson .) (kindIs "string" .) | quote }}
{{- end }}
{{- if include "karpenter.draEnabled" . }}
{{- range .Values.controller.env }}
{{- if eq .name "IGNORE_DRA_REQUESTS" }}
{{- fail "IGNORE_DRA_REQUESTS must not be set in controller.env when settings.dra.enabled is true" }}
{{- end }}
{{- end }}
- name: IGNORE_DRA_REQUESTS
  value: "false"
{{- end }}
{{- end }}

{{/* Not empty where pods get a default topology spread: it asks for rights to read Services and workloads. */}}
{{- define "karpenter.defaultSpread" -}}
{{- if .Values.settings.schedulerConfig }}true{{ end }}
{{- range .Values.controller.env }}
{{- if and (eq .name "SCHEDULER_CONFIG") (or .value .valueFrom) }}true{{ end }}
{{- end }}
{{- end }}
