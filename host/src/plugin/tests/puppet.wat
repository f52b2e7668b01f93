;; An aggregate that does what the first byte of the batch's first value says. By hand, so that it can break every rule.
(module
  (import "pelton:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32 i32 i64)))
  (import "pelton:plugin/diagnostics@0.1.0" "panicked" (func $panicked (param i32 i32 i32 i32)))
  (import "pelton:plugin/state@0.1.0" "get-many" (func $get (param i32 i32 i32 i32 i32 i32)))
  (import "pelton:plugin/state@0.1.0" "scan" (func $scan (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  ;; IMPORTS
  (memory (export "memory") 1)
  (table $table 1 funcref)
  (global $calls (mut i32) (i32.const 0))
  (global $heap (mut i32) (i32.const 8192))

  ;; 0: zeros, 64: a timestamp of -1, 128: text, 1024: manifest, 2048: progress, 3072: one column, 3200: one length
  (data (i32.const 64) "\ff\ff\ff\ff\ff\ff\ff\ff")
  (data (i32.const 128) "puppet" "0" "input" "output" "store" "raw" "no thanks" "boom" "here:7" "\ff")
  (data (i32.const 1024)
    "\80\00\00\00\06\00\00\00" "\86\00\00\00\01\00\00\00" "\86\00\00\00\01\00\00\00"
    "\50\04\00\00\01\00\00\00" "\58\04\00\00\01\00\00\00" "\00\00\00\00" "\60\04\00\00\01\00\00\00")
  (data (i32.const 1104) "\87\00\00\00\05\00\00\00" "\8c\00\00\00\06\00\00\00")
  (data (i32.const 1120) "\92\00\00\00\05\00\00\00" "\00\00\00\00" "\97\00\00\00\03\00\00\00" "\01\00\00\00" "\01\00\00\00")
  (data (i32.const 3200) "\01\00\00\00")

  (func $spin (loop $again (br $again)))
  (func $deep (param i32) (result i32)
    (i32.add (i32.const 1) (call $deep (i32.add (local.get 0) (i32.const 1)))))
  (func $boom (unreachable))
  (func $hog (loop $again (drop (memory.grow (i32.const 16))) (br $again)))
  (func $tables (loop $again (drop (table.grow $table (ref.null func) (i32.const 65536))) (br $again)))
  (func $say
    (call $log (i32.const 3) (i32.const 163) (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 0) (i64.const 0)))
  (func $chatter (loop $again (call $say) (br $again)))
  (func $look (call $get (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 3072)))
  (func $stare (loop $again (call $look) (br $again)))
  (func $leaf (loop $again
    (call $scan (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const -1) (i32.const -1) (i32.const 3072))
    (br $again)))
  ;; Asks for a million empty keys, whose lengths are fresh zeros.
  (func $crowd
    (call $get (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.mul (memory.grow (i32.const 64)) (i32.const 65536)) (i32.const 1048576) (i32.const 3072)))
  (func $busy (local $n i32)
    (loop $again
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $n) (i32.const 400000000)))))

  (func (export "cabi_realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get $size)))
    (block $fits
      (loop $more
        (br_if $fits (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
        (br_if $fits (i32.lt_s (memory.grow (i32.const 1)) (i32.const 0)))
        (br $more)))
    (local.get $at))

  (func (export "pelton:plugin/lifecycle@0.1.0#describe") (result i32)
    (nop) ;; DESCRIBE
    (i32.const 1024))

  (func (export "pelton:plugin/lifecycle@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (param $settings i32) (param i32 i32) (result i32)
    (local $verb i32)
    (local.set $verb (i32.load8_u (local.get $settings)))
    (i32.store (i32.const 3300) (i32.const 0))
    (if (i32.eq (local.get $verb) (i32.const 0x74)) (then (call $boom)))
    (if (i32.eq (local.get $verb) (i32.const 0x6c)) (then (call $spin)))
    (if (i32.eq (local.get $verb) (i32.const 0x43)) (then (call $chatter)))
    (if (i32.eq (local.get $verb) (i32.const 0x6b)) (then (drop (memory.grow (i32.const 80)))))
    (if (i32.eq (local.get $verb) (i32.const 0x66)) (then
      (i32.store (i32.const 3300) (i32.const 1))
      (i32.store (i32.const 3304) (i32.const 154))
      (i32.store (i32.const 3308) (i32.const 9))))
    (i32.const 3300))

  ;; One emit of entry 0 to output 0, with the key column of the batch and the value column at 3072.
  (func $emit (param $batch i32)
    (i64.store (i32.const 2052) (i64.const 0x100000000))
    (i64.store (i32.const 2060) (i64.const 0x100000000))
    (i64.store (i32.const 2068) (i64.const 0x100000040))
    (i64.store (i32.const 2076) (i64.load (i32.add (local.get $batch) (i32.const 24))))
    (i64.store (i32.const 2084) (i64.load (i32.add (local.get $batch) (i32.const 32))))
    (i64.store (i32.const 2092) (i64.load (i32.const 3072)))
    (i64.store (i32.const 2100) (i64.load (i32.const 3080)))
    (i64.store (i32.const 2108) (i64.const 0x100000000)))

  (func $apply (export "pelton:plugin/aggregate@0.1.0#apply") (param $batch i32) (result i32)
    (local $verb i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (local.set $verb (i32.load8_u (i32.load (i32.add (local.get $batch) (i32.const 40)))))
    (memory.fill (i32.const 2048) (i32.const 0) (i32.const 256))
    (i32.store (i32.const 2048) (i32.load (i32.add (local.get $batch) (i32.const 12))))
    ;; t: trap, l: loop, b: busy, r: recursion, m: memory, n: tables
    (if (i32.eq (local.get $verb) (i32.const 0x74)) (then (call $boom)))
    (if (i32.eq (local.get $verb) (i32.const 0x6c)) (then (call $spin)))
    (if (i32.eq (local.get $verb) (i32.const 0x62)) (then (call $busy)))
    (if (i32.eq (local.get $verb) (i32.const 0x72)) (then (drop (call $deep (i32.const 0)))))
    (if (i32.eq (local.get $verb) (i32.const 0x6d)) (then (call $hog)))
    (if (i32.eq (local.get $verb) (i32.const 0x6e)) (then (call $tables)))
    ;; k: keeps 5 MiB
    (if (i32.eq (local.get $verb) (i32.const 0x6b)) (then (drop (memory.grow (i32.const 80)))))
    ;; p: announced panic
    (if (i32.eq (local.get $verb) (i32.const 0x70)) (then
      (call $panicked (i32.const 163) (i32.const 4) (i32.const 167) (i32.const 6))
      (call $boom)))
    ;; w: one log line; C: lines for ever; A: look-ups for ever; S: scans for ever; M: a look-up of a million keys
    (if (i32.eq (local.get $verb) (i32.const 0x77)) (then (call $say)))
    (if (i32.eq (local.get $verb) (i32.const 0x43)) (then (call $chatter)))
    (if (i32.eq (local.get $verb) (i32.const 0x41)) (then (call $stare)))
    (if (i32.eq (local.get $verb) (i32.const 0x53)) (then (call $leaf)))
    (if (i32.eq (local.get $verb) (i32.const 0x4d)) (then (call $crowd)))
    ;; c: emits how many calls this instance has had
    (if (i32.eq (local.get $verb) (i32.const 0x63)) (then
      (i32.store8 (i32.const 3204) (global.get $calls))
      (i64.store (i32.const 3072) (i64.const 0x100000c84))
      (i64.store (i32.const 3080) (i64.const 0x100000c80))
      (call $emit (local.get $batch))))
    ;; g: emits the state of the key; a: asks for a store that is not there; y: asks with lengths that lie
    (if (i32.or (i32.eq (local.get $verb) (i32.const 0x67)) (i32.eq (local.get $verb) (i32.const 0x61))) (then
      (call $get
        (select (i32.const 0) (i32.const 7) (i32.eq (local.get $verb) (i32.const 0x67)))
        (i32.load (i32.add (local.get $batch) (i32.const 24)))
        (i32.load (i32.add (local.get $batch) (i32.const 28)))
        (i32.load (i32.add (local.get $batch) (i32.const 32)))
        (i32.load (i32.add (local.get $batch) (i32.const 36)))
        (i32.const 3072))
      (call $emit (local.get $batch))))
    (if (i32.eq (local.get $verb) (i32.const 0x79)) (then
      (call $get (i32.const 0) (i32.const 128) (i32.const 3) (i32.const 3200) (i32.const 1) (i32.const 3072))))
    ;; h: 8 MiB of keys; u: keys outside its memory; x: more done than there is; s: a string that is not UTF-8
    (if (i32.eq (local.get $verb) (i32.const 0x68)) (then
      (drop (memory.grow (i32.const 144)))
      (i64.store (i32.const 2076) (i64.const 0x80000000000000))))
    (if (i32.eq (local.get $verb) (i32.const 0x75)) (then (i64.store (i32.const 2076) (i64.const 0x7fffffff00000400))))
    (if (i32.eq (local.get $verb) (i32.const 0x78)) (then (i32.store (i32.const 2048) (i32.const 99))))
    (if (i32.eq (local.get $verb) (i32.const 0x73)) (then
      (i32.store8 (i32.const 2208) (i32.const 2))
      (i64.store (i32.const 2216) (i64.const 0x1000000ad))))
    ;; f: returns what follows in the value, as it is
    (if (i32.eq (local.get $verb) (i32.const 0x66)) (then
      (memory.copy (i32.const 2048)
        (i32.add (i32.load (i32.add (local.get $batch) (i32.const 40))) (i32.const 1))
        (i32.const 208))))
    ;; VERBS
    (i32.const 2048))

  (func (export "cabi_post_pelton:plugin/aggregate@0.1.0#apply") (param i32)
    (global.set $heap (i32.const 8192))))
