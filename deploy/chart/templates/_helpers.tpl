{{/* Name of the portal's objects. */}}
{{- define "weir.name" -}}
{{- if contains "weir" .Release.Name }}{{ .Release.Name | trunc 50 }}{{ else }}{{ printf "%s-weir" .Release.Name | trunc 50 }}{{ end }}
{{- end }}

{{/* Name of the agents' objects. */}}
{{- define "weir.agentName" -}}
{{ include "weir.name" . }}-agent
{{- end }}

{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.agentSelector" -}}
app.kubernetes.io/name: weir-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* What every object carries beside its selector. */}}
{{- define "weir.common" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: weir
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
{{ include "weir.common" . }}
{{- end }}

{{- define "weir.agentLabels" -}}
{{ include "weir.agentSelector" . }}
{{ include "weir.common" . }}
{{- end }}

{{/* Of the pods that make backups: no service selects them. */}}
{{- define "weir.backupLabels" -}}
app.kubernetes.io/name: weir-backup
app.kubernetes.io/instance: {{ .Release.Name }}
{{ include "weir.common" . }}
{{- end }}

{{- define "weir.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The prefix of the projects' namespaces. */}}
{{- define "weir.prefix" -}}
{{ .Values.instance }}-p-
{{- end }}

{{/* Neither the volume nor the claim can be changed: another storage gives others. */}}
{{- define "weir.claim" -}}
{{- with .Values.storage }}
{{- .existingClaim | default (list .directory .nfs.server .nfs.path .nfs.portalPath .storageClass | toJson | sha256sum | trunc 8 | printf "%s-shared-%s" (include "weir.name" $)) }}
{{- end }}
{{- end }}

{{- define "weir.storage" -}}
{{- with .Values.storage }}
{{- if .directory }}{{ .directory }}
{{- else if .nfs.server }}nfs://{{ contains ":" .nfs.server | ternary (printf "[%s]" .nfs.server) .nfs.server }}{{ .nfs.path }}
{{- else }}claim:{{ $.Release.Namespace }}/{{ include "weir.claim" $ }}
{{- end }}
{{- end }}
{{- end }}

{{/* The directory of the shared directories, in the storage. */}}
{{- define "weir.root" -}}
{{ .Values.storage.directory | default .Values.storage.nfs.path | trimSuffix "/" }}
{{- end }}

{{/* Name of the service for programs in workspaces. */}}
{{- define "weir.workspacesName" -}}
{{ include "weir.name" . }}-workspaces
{{- end }}

{{- define "weir.agentsURL" -}}
https://{{ include "weir.agentName" . }}.{{ .Release.Namespace }}.svc:{{ .Values.agents.service.port }}
{{- end }}

{{/* Names of the portal beside the one of externalURL: its service's. */}}
{{- define "weir.hosts" -}}
{{- $name := include "weir.name" . }}
{{- $own := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) }}
{{- concat $own (.Values.settings.hosts | default "" | toString | splitList "," | compact) | uniq | join "," }}
{{- end }}

{{/* The settings of “weir serve”. Those that the chart decides come last. */}}
{{- define "weir.settings" -}}
{{- $s := dict }}
{{- range $name, $value := .Values.settings }}
{{- $_ := set $s $name (kindIs "float64" $value | ternary (int64 $value) $value | toString) }}
{{- end }}
{{- $_ := set $s "runtime" "kube" }}
{{- $_ := set $s "listen" ":8080" }}
{{- $_ := set $s "agents-listen" ":8443" }}
{{- $_ := set $s "workspaces-listen" ":8081" }}
{{- $_ := set $s "workspaces-url" (printf "http://%s.%s.svc:8081" (include "weir.workspacesName" .) .Release.Namespace) }}
{{- $_ := set $s "data-dir" "/var/lib/weir" }}
{{- $_ := set $s "shared-dir" "/srv/weir" }}
{{- $_ := set $s "authority-file" "/etc/weir/authority/authority.pem" }}
{{- $_ := set $s "external-url" .Values.externalURL }}
{{- $_ := set $s "hosts" (include "weir.hosts" .) }}
{{- $_ := set $s "apps-domain" .Values.appsDomain }}
{{- $_ := set $s "sandbox-uid" (int64 .Values.user | toString) }}
{{- $_ := set $s "kube-instance" .Values.instance }}
{{- $_ := set $s "kube-prefix" (include "weir.prefix" .) }}
{{- $_ := set $s "kube-storage" (include "weir.storage" .) }}
{{- $_ := set $s "kube-portal" .Release.Namespace }}
{{- $_ := set $s "kube-image" .Values.workspaces.image }}
{{- $_ := set $s "kube-gpu-backend" .Values.gpu.backend }}
{{- $_ := set $s "kube-runtime-class" .Values.gpu.runtimeClass }}
{{- $_ := set $s "agents-url" (.Values.agents.service.url | default (include "weir.agentsURL" .)) }}
{{- if .Values.agents.enabled }}
{{- $_ := set $s "kube-agents" (printf "%s/%s" .Values.agents.namespace (include "weir.agentName" .)) }}
{{- end }}
{{- range $name, $value := $s }}
{{- if $value }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* What a pod needs for the settings and secrets of “weir serve”: variables, mounts and volumes. */}}
{{- define "weir.env" -}}
- {name: WEIR_CONFIG, value: /etc/weir/settings/weir.yaml}
- name: WEIR_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.database.secret }}, key: {{ .Values.database.key }}}
{{- range $name, $from := .Values.secretSettings }}
- name: WEIR_{{ $name | upper | replace "-" "_" }}
  valueFrom:
    secretKeyRef: {name: {{ $from.secret }}, key: {{ $from.key }}}
{{- end }}
{{- range $name, $from := .Values.secretFiles }}
- {name: WEIR_{{ $name | upper | replace "-" "_" }}, value: /etc/weir/secrets/{{ $name }}}
{{- end }}
{{- end }}

{{- define "weir.mounts" -}}
- {name: settings, mountPath: /etc/weir/settings, readOnly: true}
- {name: authority, mountPath: /etc/weir/authority, readOnly: true}
{{- if .Values.database.caSecret }}
- {name: database-ca, mountPath: /etc/weir/database, readOnly: true}
{{- end }}
{{- if .Values.secretFiles }}
- {name: secrets, mountPath: /etc/weir/secrets, readOnly: true}
{{- end }}
{{- end }}

{{- define "weir.volumes" -}}
- name: settings
  configMap: {name: {{ include "weir.name" . }}}
- name: authority
  secret:
    secretName: {{ .Values.authority.secret }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.authority.key }}, path: authority.pem}
{{- with .Values.secretFiles }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $name, $from := . }}
      - secret:
          name: {{ $from.secret }}
          items:
            - {key: {{ $from.key }}, path: {{ $name }}}
      {{- end }}
{{- end }}
{{- with .Values.database.caSecret }}
- name: database-ca
  secret:
    secretName: {{ . }}
    items:
      - {key: ca.crt, path: ca.crt}
{{- end }}
{{- end }}

{{/* Refuses what no single value shows to be wrong. */}}
{{- define "weir.check" -}}
{{- with .Values.storage }}
{{- $backends := list .directory (or .nfs.server .nfs.path) .storageClass | compact | len }}
{{- if or (ne (empty .nfs.server) (empty .nfs.path)) (gt $backends 1) (and (eq $backends 0) (empty .existingClaim)) (and .storageClass .existingClaim) }}
{{- fail "set storage.nfs.server and storage.nfs.path, storage.storageClass, storage.existingClaim, or, for a cluster of one machine, storage.directory" }}
{{- end }}
{{- end }}
{{- if and .Values.ingress.enabled (or (empty .Values.externalURL) (not (contains "." .Values.appsDomain))) }}
{{- fail "ingress.enabled needs its hosts: set externalURL, such as https://weir.example.org, and appsDomain, such as apps.example.org" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not (hasKey .Values.secretFiles "metrics-token-file")) }}
{{- fail "serviceMonitor.enabled needs the token for metrics: set secretFiles.metrics-token-file, such as {secret: weir-metrics, key: token}" }}
{{- end }}
{{- if and .Values.backup.enabled (empty .Values.backup.existingClaim) }}
{{- fail "backup.enabled needs a place for the backups: set backup.existingClaim to a claim in the namespace of the release" }}
{{- end }}
{{- if and .Values.agents.enabled .Values.agents.createNamespace (eq .Values.agents.namespace .Release.Namespace) }}
{{- fail "agents.namespace is the release's own: give the agents another, or set agents.createNamespace to false and let this one allow what they need" }}
{{- end }}
{{- end }}
