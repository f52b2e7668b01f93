;; An aggregate that counts the records of each key and acts on the first byte of each record's value. Keys are one byte; a count
;; is one byte in the store and one digit behind the value that is emitted.
;; Regions: 128 texts, 1024 manifest, 2048 progress, 4096 emits (entries, times, keys, lengths), 18432 writes, 42000 tables by key,
;; 45056 rejections, 49152 a look-up, 51200 zeros, 65536 values of emits, 131072 heap.
(module
  (import "pelton:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32 i32 i64)))
  (import "pelton:plugin/diagnostics@0.1.0" "panicked" (func $panicked (param i32 i32 i32 i32)))
  (import "pelton:plugin/state@0.1.0" "get-many" (func $get (param i32 i32 i32 i32 i32 i32)))
  (import "pelton:plugin/metrics@0.1.0" "report" (func $report (param i32 i32 i32 i32)))
  (memory (export "memory") 4)
  (global $calls (mut i32) (i32.const 0))
  (global $heap (mut i32) (i32.const 131072))
  (global $emits (mut i32) (i32.const 0))
  (global $bytes (mut i32) (i32.const 0))
  (global $rejected (mut i32) (i32.const 0))

  (data (i32.const 128) "actor-" "0" "input" "output" "store" "raw")
  (data (i32.const 160) "null-key" "bad" "later" "halt" "why")
  ;; A count by the name of "done"; its number is written before it is told.
  (data (i32.const 200) "done")
  (data (i32.const 208) "\c8\00\00\00\04\00\00\00")
  (data (i32.const 1024)
    "\80\00\00\00\06\00\00\00" "\86\00\00\00\01\00\00\00" "\86\00\00\00\01\00\00\00"
    "\50\04\00\00\01\00\00\00" "\58\04\00\00\01\00\00\00" "\00\00\00\00" "\60\04\00\00\01\00\00\00")
  (data (i32.const 1104) "\87\00\00\00\05\00\00\00" "\8c\00\00\00\06\00\00\00")
  (data (i32.const 1120) "\92\00\00\00\05\00\00\00" "\00\00\00\00" "\97\00\00\00\03\00\00\00" "\01\00\00\00" "\01\00\00\00")

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

  (func (export "pelton:plugin/lifecycle@0.1.0#describe") (result i32) (i32.const 1024))
  (func (export "pelton:plugin/lifecycle@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 51200))

  ;; A failure: code, and the message "why".
  (func $failure (param $at i32) (param $code i32) (param $length i32)
    (i32.store (local.get $at) (local.get $code))
    (i32.store offset=4 (local.get $at) (local.get $length))
    (i32.store offset=8 (local.get $at) (i32.const 180))
    (i32.store offset=12 (local.get $at) (i32.const 3)))

  (func $reject (param $entry i32) (param $code i32) (param $length i32)
    (local $at i32)
    (local.set $at (i32.add (i32.const 45056) (i32.mul (global.get $rejected) (i32.const 48))))
    (memory.fill (local.get $at) (i32.const 0) (i32.const 48))
    (i32.store (local.get $at) (local.get $entry))
    (call $failure (i32.add (local.get $at) (i32.const 8)) (local.get $code) (local.get $length))
    (global.set $rejected (i32.add (global.get $rejected) (i32.const 1))))

  ;; One more of this key; the count. Asks the host at the key's first record in a call.
  (func $count (param $key i32) (result i32)
    (local $cell i32)
    (local.set $cell (i32.add (i32.const 42000) (local.get $key)))
    (if (i32.eqz (i32.load8_u offset=300 (local.get $cell))) (then
      (i32.store8 offset=300 (local.get $cell) (i32.const 1))
      (i32.store8 (i32.const 49152) (local.get $key))
      (i32.store (i32.const 49156) (i32.const 1))
      (call $get (i32.const 0) (i32.const 49152) (i32.const 1) (i32.const 49156) (i32.const 1) (i32.const 49160))
      (if (i32.gt_s (i32.load (i32.load (i32.const 49168))) (i32.const 0)) (then
        (i32.store8 (local.get $cell) (i32.load8_u (i32.load (i32.const 49160))))))))
    (i32.store8 (local.get $cell) (i32.add (i32.load8_u (local.get $cell)) (i32.const 1)))
    (i32.load8_u (local.get $cell)))

  (func $emit (param $entry i32) (param $key i32) (param $value i32) (param $length i32) (param $count i32) (param $verb i32)
    (local $slot i32) (local $to i32) (local $size i32)
    (local.set $slot (i32.mul (global.get $emits) (i32.const 4)))
    (local.set $to (i32.add (i32.const 65536) (global.get $bytes)))
    (local.set $size (i32.add (local.get $length) (i32.const 1)))
    (i32.store offset=4096 (local.get $slot) (local.get $entry))
    ;; D: a time that no topic takes
    (i64.store offset=8192 (i32.mul (global.get $emits) (i32.const 8))
      (select (i64.const 0x7fffffffffffffff) (i64.const -1) (i32.eq (local.get $verb) (i32.const 0x44))))
    (i32.store8 offset=12288 (global.get $emits) (local.get $key))
    (i32.store offset=13312 (local.get $slot) (i32.const 1))
    (memory.copy (local.get $to) (local.get $value) (local.get $length))
    (i32.store8 (i32.add (local.get $to) (local.get $length)) (i32.add (i32.const 48) (local.get $count)))
    ;; B: 3000 bytes more
    (if (i32.eq (local.get $verb) (i32.const 0x42)) (then
      (memory.fill (i32.add (local.get $to) (local.get $size)) (i32.const 120) (i32.const 3000))
      (local.set $size (i32.add (local.get $size) (i32.const 3000)))))
    (i32.store offset=16384 (local.get $slot) (local.get $size))
    (global.set $bytes (i32.add (global.get $bytes) (local.get $size)))
    (global.set $emits (i32.add (global.get $emits) (i32.const 1))))

  ;; Every key that was counted, with its last writer. A key of `W` is written with 3000 bytes.
  (func $write
    (local $key i32) (local $n i32) (local $slot i32) (local $bytes i32) (local $size i32) (local $writer i32)
    (loop $next
      (local.set $writer (i32.load offset=43008 (i32.mul (local.get $key) (i32.const 4))))
      (if (local.get $writer) (then
        (local.set $slot (i32.mul (local.get $n) (i32.const 4)))
        (local.set $size (select (i32.const 3000) (i32.const 1) (i32.load8_u offset=44100 (local.get $key))))
        (i32.store offset=18432 (local.get $slot) (i32.sub (local.get $writer) (i32.const 1)))
        (i32.store8 offset=19456 (local.get $n) (local.get $key))
        (i32.store offset=20480 (local.get $slot) (i32.const 1))
        (i32.store8 offset=21504 (local.get $bytes) (i32.load8_u offset=42000 (local.get $key)))
        (i32.store offset=40960 (local.get $slot) (local.get $size))
        (local.set $bytes (i32.add (local.get $bytes) (local.get $size)))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))))
      (local.set $key (i32.add (local.get $key) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $key) (i32.const 256))))
    (call $list (i32.const 2148) (i32.const 18432) (local.get $n))
    (call $list (i32.const 2156) (i32.const 51200) (local.get $n))
    (call $list (i32.const 2164) (i32.const 19456) (local.get $n))
    (call $list (i32.const 2172) (i32.const 20480) (local.get $n))
    (call $list (i32.const 2180) (i32.const 21504) (local.get $bytes))
    (call $list (i32.const 2188) (i32.const 40960) (local.get $n)))

  (func $list (param $at i32) (param $items i32) (param $length i32)
    (i32.store (local.get $at) (local.get $items))
    (i32.store offset=4 (local.get $at) (local.get $length)))

  (func $finish (param $done i32)
    (i32.store (i32.const 2048) (local.get $done))
    (call $list (i32.const 2052) (i32.const 4096) (global.get $emits))
    (call $list (i32.const 2060) (i32.const 51200) (global.get $emits))
    (call $list (i32.const 2068) (i32.const 8192) (global.get $emits))
    (call $list (i32.const 2076) (i32.const 12288) (global.get $emits))
    (call $list (i32.const 2084) (i32.const 13312) (global.get $emits))
    (call $list (i32.const 2092) (i32.const 65536) (global.get $bytes))
    (call $list (i32.const 2100) (i32.const 16384) (global.get $emits))
    (call $list (i32.const 2108) (i32.const 51200) (global.get $emits))
    (call $write)
    (call $list (i32.const 2196) (i32.const 45056) (global.get $rejected)))

  ;; One record; 0: go on, 1: retry, 2: stop.
  (func $act (param $entry i32) (param $keyed i32) (param $key i32) (param $value i32) (param $length i32) (result i32)
    (local $verb i32)
    (if (i32.lt_s (local.get $keyed) (i32.const 0)) (then
      (call $reject (local.get $entry) (i32.const 160) (i32.const 8))
      (return (i32.const 0))))
    (local.set $verb (i32.load8_u (local.get $value)))
    ;; T: trap, L: loop, N: reject, S: stop, Rn: retry until the instance has had n calls
    (if (i32.eq (local.get $verb) (i32.const 0x54)) (then (unreachable)))
    (if (i32.eq (local.get $verb) (i32.const 0x4c)) (then (loop $again (br $again))))
    (if (i32.eq (local.get $verb) (i32.const 0x4e)) (then
      (call $reject (local.get $entry) (i32.const 168) (i32.const 3))
      (return (i32.const 0))))
    (if (i32.eq (local.get $verb) (i32.const 0x53)) (then (return (i32.const 2))))
    (if (i32.eq (local.get $verb) (i32.const 0x52)) (then
      (if (i32.lt_u (global.get $calls) (i32.sub (i32.load8_u offset=1 (local.get $value)) (i32.const 48)))
        (then (return (i32.const 1))))))
    (local.set $key (i32.load8_u (local.get $key)))
    (call $emit (local.get $entry) (local.get $key) (local.get $value) (local.get $length)
      (call $count (local.get $key)) (local.get $verb))
    (i32.store offset=43008 (i32.mul (local.get $key) (i32.const 4)) (i32.add (local.get $entry) (i32.const 1)))
    (if (i32.eq (local.get $verb) (i32.const 0x57)) (then (i32.store8 offset=44100 (local.get $key) (i32.const 1))))
    (i32.const 0))

  (func (export "pelton:plugin/aggregate@0.1.0#apply") (param $batch i32) (result i32)
    (local $entry i32) (local $key i32) (local $value i32) (local $keyed i32) (local $length i32) (local $ending i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (global.set $emits (i32.const 0))
    (global.set $bytes (i32.const 0))
    (global.set $rejected (i32.const 0))
    (memory.fill (i32.const 2048) (i32.const 0) (i32.const 256))
    (memory.fill (i32.const 42000) (i32.const 0) (i32.const 2400))
    (local.set $key (i32.load offset=24 (local.get $batch)))
    (local.set $value (i32.load offset=40 (local.get $batch)))
    (block $end
      (loop $next
        (br_if $end (i32.ge_u (local.get $entry) (i32.load offset=12 (local.get $batch))))
        (local.set $keyed
          (i32.load (i32.add (i32.load offset=32 (local.get $batch)) (i32.mul (local.get $entry) (i32.const 4)))))
        (local.set $length
          (i32.load (i32.add (i32.load offset=48 (local.get $batch)) (i32.mul (local.get $entry) (i32.const 4)))))
        (local.set $ending
          (call $act (local.get $entry) (local.get $keyed) (local.get $key) (local.get $value) (local.get $length)))
        (br_if $end (local.get $ending))
        (if (i32.gt_s (local.get $keyed) (i32.const 0)) (then
          (local.set $key (i32.add (local.get $key) (local.get $keyed)))))
        (local.set $value (i32.add (local.get $value) (local.get $length)))
        (local.set $entry (i32.add (local.get $entry) (i32.const 1)))
        (br $next)))
    (i64.store (i32.const 216) (i64.extend_i32_u (local.get $entry)))
    (call $report (i32.const 208) (i32.const 1) (i32.const 0) (i32.const 0))
    (call $finish (local.get $entry))
    (i32.store8 (i32.const 2208) (local.get $ending))
    (if (local.get $ending) (then
      (call $failure (i32.const 2216)
        (select (i32.const 171) (i32.const 176) (i32.eq (local.get $ending) (i32.const 1)))
        (select (i32.const 5) (i32.const 4) (i32.eq (local.get $ending) (i32.const 1))))))
    (i32.const 2048))

  (func (export "cabi_post_pelton:plugin/aggregate@0.1.0#apply") (param i32)
    (global.set $heap (i32.const 131072))))
