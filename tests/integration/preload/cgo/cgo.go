// SPDX-License-Identifier: MIT
// A program in Go and C that profiles itself with runtime/pprof (check.py, case cgo).
package main

/*
#cgo LDFLAGS: -lm
#include <math.h>
static double in_c(int n) { double s = 0; for (int i = 1; i < n; i++) s += sqrt(i) / (1 + s * 1e-9); return s; }
*/
import "C"

import (
	"fmt"
	"os"
	"runtime/pprof"
	"sync"
	"time"
)

func inGo(n int) uint64 {
	v := uint64(7)
	for i := 0; i < n; i++ {
		v = v*1664525 + 1013904223
	}
	return v
}

func main() {
	file, _ := os.Create(os.Args[1])
	if err := pprof.StartCPUProfile(file); err != nil {
		panic(err)
	}
	end := time.Now().Add(2 * time.Second)
	var all sync.WaitGroup
	var sink uint64
	for t := 0; t < 2; t++ {
		all.Add(1)
		go func(t int) {
			defer all.Done()
			for time.Now().Before(end) {
				if t == 0 {
					sink += inGo(200000)
				} else {
					C.in_c(200000)
				}
			}
		}(t)
	}
	all.Wait()
	pprof.StopCPUProfile()
	file.Close()
	fmt.Println("done")
}
