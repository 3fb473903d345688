{{/*
features.on is "true" when a feature gate is on everywhere: its state is On, and no
live process is known to have it off, or not known at all. Otherwise it is empty,
also where the cluster does not say, and where "helm template" has no cluster.
Takes root (the chart's $), name, and namespace (kube-system without it).
*/}}
{{- define "features.on" -}}
{{- if .root.Capabilities.APIVersions.Has "features.k8s.io/v1alpha1" -}}
{{- $feature := lookup "features.k8s.io/v1alpha1" "Feature" (default "kube-system" .namespace) .name -}}
{{- if eq (dig "status" "state" "" $feature) "On" -}}
{{- range dig "status" "conditions" (list) $feature -}}
{{- if and (eq .type "UsesMatch") (eq .status "True") -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
