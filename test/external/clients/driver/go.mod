// What the drivers of third parties' clients share. It has no dependencies, so that it
// moves no version of any of them.
module k8s.io/kubernetes-features/test/external/clients/driver

go 1.26.0
