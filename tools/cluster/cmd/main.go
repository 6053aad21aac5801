package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"weir/tools/cluster"
)

const usage = `usage: cmd [flags] up|down|prepare

  prepare compiles Kubernetes and makes the images, once; takes minutes
  up      brings up a Kubernetes on this machine and leaves it running
  down    removes it, and what killed tests have left

`

func main() {
	log.SetFlags(0)
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	dir := flag.String("dir", ".cache/cluster", "where everything of the cluster lies")
	simulated := flag.Int("simulated", 0, "nodes that KWOK simulates, 8 GPUs each")
	controlPlane := flag.Bool("control-plane-only", os.Geteuid() != 0, "no node that runs pods; it needs root")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch flag.Arg(0) {
	case "up":
		err = up(ctx, cluster.Options{Dir: *dir, Simulated: *simulated, ControlPlaneOnly: *controlPlane, Log: log.Printf})
	case "down":
		err = errors.Join(cluster.Stop(*dir), cluster.Sweep())
	case "prepare":
		err = cluster.Prepare(ctx, log.Printf)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func up(ctx context.Context, o cluster.Options) error {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		log.Printf("KUBECONFIG names %s: that cluster is used, none is started.", path)
		return nil
	}
	kubeconfig, running := cluster.Running(o.Dir)
	if running {
		log.Print("It is up already, as it was started then.")
	} else {
		if o.ControlPlaneOnly {
			log.Print("Only the control plane: a node that runs pods needs root.")
		}
		began := time.Now()
		c, err := cluster.Start(ctx, o)
		if err != nil {
			return err
		}
		log.Printf("Ready after %.1f s.", time.Since(began).Seconds())
		kubeconfig = c.Kubeconfig
	}
	kubeconfig, err := filepath.Abs(kubeconfig)
	if err != nil {
		return err
	}
	log.Printf("To use it:\n    export KUBECONFIG=%s\nTo remove it:\n    make cluster-down", kubeconfig)
	return nil
}
