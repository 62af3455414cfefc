// Command controlplane is a Kubernetes control plane in one binary, for tests: its first argument names the part to
// run, the other arguments are that part's own flags. Nothing of Kubernetes or etcd is changed.
//
// A server started from here ends when its standard input closes. Whoever starts it holds the other end of that pipe,
// so a test run leaves no servers behind, not even when it is killed.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	_ "time/tzdata" // time zones of CronJobs, as in kube-apiserver and kube-controller-manager

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = `usage:
  %[1]s certs DIRECTORY SERVER_URL
  %[1]s etcd|kube-apiserver|kube-controller-manager|kube-scheduler FLAGS...
`

func main() {
	program := filepath.Base(os.Args[0])
	if len(os.Args) < 2 {
		fail(2, usage, program)
	}
	// Every part reads its flags from os.Args: let it see itself as the program.
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "certs":
		if len(os.Args) != 3 {
			fail(2, usage, program)
		}
		if err := writeCredentials(os.Args[1], os.Args[2]); err != nil {
			fail(1, "certs: %v\n", err)
		}
	case "etcd":
		go endWithStandardInput()
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		serve(kubeapiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		serve(kubecontrollermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		serve(kubescheduler.NewSchedulerCommand())
	default:
		fail(2, usage, program)
	}
}

func serve(command *cobra.Command) {
	go endWithStandardInput()
	os.Exit(cli.Run(command))
}

func endWithStandardInput() {
	_, _ = io.Copy(io.Discard, os.Stdin) // whether it ended well or badly, the starter is gone
	os.Exit(1)
}

func fail(code int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, format, args...)
	os.Exit(code)
}
