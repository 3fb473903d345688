// chromedp and what it brings must not move the versions that ship; so the test
// that looks at the page in a browser is a module of its own.
module k8s.io/kubernetes-features/test/browser

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
