//! The calls of librdkafka that rdkafka wraps badly or not at all, behind safe functions. The only file of this room with `unsafe`.
//!
//! Why each is here: partition queues read by callback (no allocation per record, exact byte limits, and no batch call: see
//! [`Queue::read`]); records produced to topics resolved once; delivery reports waited for without sleeping; group metadata looked
//! into; topic ids.
#![allow(unsafe_code, reason = "librdkafka is a C library; every block says why it holds")]

use crate::model::{Batch, RecordRef};
use rdkafka::ClientContext;
use rdkafka::bindings as c;
use rdkafka::client::Client;
use rdkafka::types::{RDKafka, RDKafkaErrorCode, RDKafkaRespErr};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

/// What to call when a queue stops being empty.
pub(super) type Wake = Arc<dyn Fn() + Send + Sync>;

/// A queue of a client. Must be dropped before its client: owners keep both, the queue first.
pub(super) struct Queue {
    ptr: *mut c::rd_kafka_queue_t,
    /// Boxed, so that the address handed to librdkafka stays.
    wake: Option<Box<Wake>>,
}

/// One message of a partition queue, a record or an event, borrowed for the length of a callback.
pub(super) struct Fetched<'a>(&'a c::rd_kafka_message_t);

/// What came of a produced record.
pub(super) struct Report {
    /// The number given to [`Topic::produce`].
    pub(super) tag: usize,
    pub(super) partition: i32,
    /// Whether the record was alone in its batch. In a shared one librdkafka 2.12 gives every record the code of the refused one
    /// (it overwrites the code that tells them apart before the report is made).
    pub(super) alone: bool,
    pub(super) outcome: Result<i64, RDKafkaErrorCode>,
}

/// What a client has to say on its main queue.
pub(super) enum Event<'a> {
    Report(Report),
    Log { level: i32, facility: &'a str, text: &'a str },
    Error(RDKafkaErrorCode, &'a str),
}

/// A topic resolved once. Must be dropped before its client.
pub(super) struct Topic {
    client: *mut RDKafka,
    ptr: *mut c::rd_kafka_topic_t,
}

struct Reading<'f> {
    client: *mut RDKafka,
    take: &'f mut dyn FnMut(Fetched<'_>) -> bool,
}

// SAFETY: librdkafka's queues and topics are used by any thread under locks of their own.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Send for Topic {}

impl Queue {
    /// The queue of one partition, cut off from the consumer's own, so that its records come here only. Holds until the partition
    /// is unassigned: librdkafka undoes the cut when it stops fetching, so it is made anew before every assign.
    pub(super) fn of_partition<C: ClientContext>(client: &Client<C>, topic: &str, partition: i32) -> Option<Queue> {
        let topic = CString::new(topic).ok()?;
        // SAFETY: the client lives during the call; the name is a C string; a null answer is handled by `owned`.
        let queue = unsafe { c::rd_kafka_queue_get_partition(client.native_ptr(), topic.as_ptr(), partition) };
        let queue = Queue::owned(queue)?;
        queue.cut();
        Some(queue)
    }

    /// The queue of logs, errors and delivery reports.
    pub(super) fn main<C: ClientContext>(client: &Client<C>) -> Option<Queue> {
        // SAFETY: the client lives during the call; the answer is a reference of our own.
        Queue::owned(unsafe { c::rd_kafka_queue_get_main(client.native_ptr()) })
    }

    /// Makes records come to this queue (again).
    pub(super) fn cut(&self) {
        // SAFETY: `ptr` is a live queue; null as destination means no forwarding.
        unsafe { c::rd_kafka_queue_forward(self.ptr, std::ptr::null_mut()) }
    }

    /// Hands what is there to `take` until it says `false`, waiting up to `wait` for the first. What is left stays in the queue.
    ///
    /// `rd_kafka_consume_batch_queue` is not used: in librdkafka 2.12 it counts the event "end of partition at N" as a record at N
    /// and moves the client's own position to N + 1. A pause inside a rebalance then goes on from there, and record N is never
    /// read. The callback path counts records only.
    pub(super) fn read<C: ClientContext>(
        &self,
        client: &Client<C>,
        wait: Duration,
        take: &mut dyn FnMut(Fetched<'_>) -> bool,
    ) {
        let mut reading = Reading { client: client.native_ptr(), take };
        let opaque = (&raw mut reading).cast::<c_void>();
        // SAFETY: the callback runs only inside this call, on this thread; `reading` outlives it.
        unsafe { c::rd_kafka_consume_callback_queue(self.ptr, millis(wait), Some(on_message), opaque) };
    }

    /// Calls `wake` when the queue stops being empty, on a thread of librdkafka's that holds the queue's lock: `wake` must not
    /// use the queue.
    pub(super) fn on_ready(&mut self, wake: Wake) {
        self.silence();
        let wake = Box::new(wake);
        // SAFETY: the box's content has a stable address and lives until `silence`, which waits for the queue's lock.
        unsafe { c::rd_kafka_queue_cb_event_enable(self.ptr, Some(on_wake), (&raw const *wake).cast_mut().cast()) };
        self.wake = Some(wake);
    }

    /// Serves one event of a main queue, waiting up to `wait` for it. Whether there was one.
    pub(super) fn serve(&self, wait: Duration, on: &mut dyn FnMut(Event<'_>)) -> bool {
        // SAFETY: `ptr` is a live queue; the event is ours, looked at below and destroyed once.
        unsafe {
            let event = c::rd_kafka_queue_poll(self.ptr, millis(wait));
            if event.is_null() {
                return false;
            }
            match c::rd_kafka_event_type(event) {
                c::RD_KAFKA_EVENT_DR => reports(event, on),
                c::RD_KAFKA_EVENT_LOG => log(event, on),
                c::RD_KAFKA_EVENT_ERROR => {
                    let code = RDKafkaErrorCode::from(c::rd_kafka_event_error(event));
                    on(Event::Error(code, text(c::rd_kafka_event_error_string(event))));
                }
                _ => {}
            }
            c::rd_kafka_event_destroy(event);
        }
        true
    }

    fn owned(ptr: *mut c::rd_kafka_queue_t) -> Option<Queue> {
        (!ptr.is_null()).then_some(Queue { ptr, wake: None })
    }

    fn silence(&mut self) {
        // SAFETY: `ptr` is a live queue. The call takes the queue's lock, under which callbacks run: none runs afterwards.
        unsafe { c::rd_kafka_queue_cb_event_enable(self.ptr, None, std::ptr::null_mut()) };
        self.wake = None;
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.silence();
        // SAFETY: our own reference, given up once.
        unsafe { c::rd_kafka_queue_destroy(self.ptr) }
    }
}

impl Fetched<'_> {
    /// `None` for a record; else what happened.
    pub(super) fn event(&self) -> Option<RDKafkaErrorCode> {
        (self.0.err != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR).then(|| self.0.err.into())
    }

    /// Of the record; of an event, where it happened.
    pub(super) fn offset(&self) -> i64 {
        self.0.offset
    }

    /// Bytes of key and value.
    pub(super) fn bytes(&self) -> usize {
        self.0.len + self.0.key_len
    }

    pub(super) fn append_to(&self, batch: &mut Batch) {
        batch.offsets.push(self.0.offset);
        batch.timestamps.push(self.timestamp());
        batch.keys.push(bytes(self.0.key, self.0.key_len));
        batch.values.push(bytes(self.0.payload, self.0.len));
        batch.headers.start();
        self.append_headers(batch);
    }

    fn timestamp(&self) -> i64 {
        let mut kind = c::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message lives during the callback.
        unsafe { c::rd_kafka_message_timestamp(self.0, &raw mut kind) }
    }

    fn append_headers(&self, batch: &mut Batch) {
        let mut headers = std::ptr::null_mut();
        let (mut name, mut value, mut size) = (std::ptr::null(), std::ptr::null(), 0);
        // SAFETY: headers, names and values belong to the message and live as long as it; names are C strings.
        unsafe {
            if c::rd_kafka_message_headers(self.0, &raw mut headers) != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                return;
            }
            for i in 0.. {
                let found = c::rd_kafka_header_get_all(headers, i, &raw mut name, &raw mut value, &raw mut size);
                if found != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                    break;
                }
                batch.headers.add(CStr::from_ptr(name).to_bytes(), bytes(value, size));
            }
        }
    }
}

impl Topic {
    pub(super) fn resolve<C: ClientContext>(client: &Client<C>, name: &str) -> Option<Topic> {
        let name = CString::new(name).ok()?;
        let client = client.native_ptr();
        // SAFETY: the client lives during the call; the name is a C string; null configuration means the client's defaults.
        let ptr = unsafe { c::rd_kafka_topic_new(client, name.as_ptr(), std::ptr::null_mut()) };
        (!ptr.is_null()).then_some(Topic { client, ptr })
    }

    /// Hands a copy of the record to the client. The report will carry `tag`. Without a partition the partitioner decides.
    pub(super) fn produce(
        &self,
        partition: Option<i32>,
        record: RecordRef<'_>,
        timestamp: i64,
        tag: usize,
    ) -> Result<(), RDKafkaErrorCode> {
        let headers = headers(record);
        let arguments = [
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_RKT, |u| u.rkt = self.ptr),
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_PARTITION, |u| u.i32_ = partition.unwrap_or(-1)),
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_MSGFLAGS, |u| u.i = c::RD_KAFKA_MSG_F_COPY),
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_VALUE, |u| u.mem = memory(record.value)),
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_KEY, |u| u.mem = memory(record.key)),
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_OPAQUE, |u| u.ptr = tag as *mut c_void),
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_TIMESTAMP, |u| u.i64_ = timestamp),
            argument(c::rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADERS, |u| u.headers = headers),
        ];
        // SAFETY: client and topic are alive; key and value are copied inside the call; the headers pass to the message when it
        // succeeds and stay ours when it fails.
        unsafe {
            let error = c::rd_kafka_produceva(self.client, arguments.as_ptr(), arguments.len());
            if error.is_null() {
                return Ok(());
            }
            let code = c::rd_kafka_error_code(error);
            c::rd_kafka_error_destroy(error);
            if !headers.is_null() {
                c::rd_kafka_headers_destroy(headers);
            }
            Err(code.into())
        }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: our own reference, given up once.
        unsafe { c::rd_kafka_topic_destroy(self.ptr) }
    }
}

/// Makes the client send what waits for `linger.ms` now, and waits up to a millisecond for it to arrive.
pub(super) fn hurry<C: ClientContext>(client: &Client<C>) {
    // SAFETY: the client lives during the call. It serves nothing itself: reports come as events. A wait of 0 would be over before the
    // senders, which it wakes, look whether somebody flushes (librdkafka 2.12, `rd_kafka_flush`).
    unsafe { c::rd_kafka_flush(client.native_ptr(), 1) };
}

/// Generation (or member epoch) and member id of a consumer in its group; `None` outside a group.
pub(super) fn membership<C: ClientContext>(client: &Client<C>) -> Option<(i32, String)> {
    // SAFETY: the client lives during the call; the metadata is ours, copied from and destroyed once.
    unsafe {
        let metadata = c::rd_kafka_consumer_group_metadata(client.native_ptr());
        if metadata.is_null() {
            return None;
        }
        let generation = c::rd_kafka_consumer_group_metadata_generation_id(metadata);
        let member = text(c::rd_kafka_consumer_group_metadata_member_id(metadata)).to_owned();
        c::rd_kafka_consumer_group_metadata_destroy(metadata);
        Some((generation, member))
    }
}

/// The ids of topics (KIP-516), in the order of `names`; of one that is not there, nothing. `None` where no answer came in time.
pub(super) fn topic_ids<C: ClientContext>(
    client: &Client<C>,
    names: &[&str],
    wait: Duration,
) -> Option<Vec<Option<String>>> {
    let names: Vec<CString> = names.iter().map(|name| CString::new(*name)).collect::<Result<_, _>>().ok()?;
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: everything made here is destroyed here, the result last; the answer is copied before.
    unsafe {
        let queue = Queue::owned(c::rd_kafka_queue_new(client.native_ptr()))?;
        let topics = c::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        let operation = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
        let options = c::rd_kafka_AdminOptions_new(client.native_ptr(), operation);
        c::rd_kafka_AdminOptions_set_request_timeout(options, millis(wait), std::ptr::null_mut(), 0);
        c::rd_kafka_DescribeTopics(client.native_ptr(), topics, options, queue.ptr);
        c::rd_kafka_TopicCollection_destroy(topics);
        c::rd_kafka_AdminOptions_destroy(options);
        let event = c::rd_kafka_queue_poll(queue.ptr, millis(wait + Duration::from_secs(1)));
        let ids = (!event.is_null()).then(|| described_ids(event, &names)).flatten();
        if !event.is_null() {
            c::rd_kafka_event_destroy(event);
        }
        ids
    }
}

/// SAFETY: `event` is a live answer to DescribeTopics.
unsafe fn described_ids(event: *mut c::rd_kafka_event_t, names: &[CString]) -> Option<Vec<Option<String>>> {
    let mut count = 0;
    unsafe {
        let result = c::rd_kafka_event_DescribeTopics_result(event);
        if result.is_null() || c::rd_kafka_event_error(event) != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        let topics = c::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        if topics.is_null() {
            return None;
        }
        let described = std::slice::from_raw_parts(topics, count);
        names.iter().map(|name| described_id(described, name)).collect()
    }
}

/// The inner `None`: there is no such topic. The outer: the answer does not say.
///
/// SAFETY: `topics` are of a live answer.
unsafe fn described_id(topics: &[*const c::rd_kafka_TopicDescription_t], name: &CStr) -> Option<Option<String>> {
    unsafe {
        let of = |topic: &&*const _| CStr::from_ptr(c::rd_kafka_TopicDescription_name(**topic)) == name;
        let topic = *topics.iter().find(of)?;
        match c::rd_kafka_error_code(c::rd_kafka_TopicDescription_error(topic)) {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => {
                Some(Some(text(c::rd_kafka_Uuid_base64str(c::rd_kafka_TopicDescription_topic_id(topic))).to_owned()))
            }
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART => Some(None),
            _ => None,
        }
    }
}

/// SAFETY: `event` is a live delivery-report event.
unsafe fn reports(event: *mut c::rd_kafka_event_t, on: &mut dyn FnMut(Event<'_>)) {
    // SAFETY: as above.
    let alone = unsafe { c::rd_kafka_event_message_count(event) } == 1;
    loop {
        // SAFETY: messages live as long as their event.
        let Some(message) = (unsafe { c::rd_kafka_event_message_next(event).as_ref() }) else { return };
        let outcome = match message.err {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(message.offset),
            error => Err(error.into()),
        };
        on(Event::Report(Report { tag: message._private as usize, partition: message.partition, alone, outcome }));
    }
}

/// SAFETY: `event` is a live log event.
unsafe fn log(event: *mut c::rd_kafka_event_t, on: &mut dyn FnMut(Event<'_>)) {
    let (mut facility, mut line, mut level) = (std::ptr::null(), std::ptr::null(), 0);
    unsafe {
        if c::rd_kafka_event_log(event, &raw mut facility, &raw mut line, &raw mut level) == 0 {
            on(Event::Log { level, facility: text(facility), text: text(line) });
        }
    }
}

/// SAFETY: `text` is null or a C string that outlives `'a`.
unsafe fn text<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?").trim()
}

unsafe extern "C" fn on_message(message: *mut c::rd_kafka_message_t, reading: *mut c_void) {
    // SAFETY: librdkafka hands over the pointer given in `Queue::read`, on the same thread, with a live message.
    unsafe {
        let reading = &mut *reading.cast::<Reading<'_>>();
        if !(reading.take)(Fetched(&*message)) {
            // Thread-local in librdkafka: ends this thread's callback loop and puts the rest back.
            c::rd_kafka_yield(reading.client);
        }
    }
}

unsafe extern "C" fn on_wake(_client: *mut RDKafka, wake: *mut c_void) {
    // SAFETY: the pointer given in `Queue::on_ready`, alive until the callback is taken back.
    let wake = unsafe { &*wake.cast::<Wake>() };
    wake();
}

fn headers(record: RecordRef<'_>) -> *mut c::rd_kafka_headers_t {
    if record.headers.is_empty() {
        return std::ptr::null_mut();
    }
    // SAFETY: names and values are copied; a null value has no size.
    unsafe {
        let headers = c::rd_kafka_headers_new(record.headers.len());
        for (name, value) in record.headers.iter() {
            let size = value.map_or(0, |value| value.len() as isize);
            let value = value.map_or(std::ptr::null(), <[u8]>::as_ptr).cast();
            c::rd_kafka_header_add(headers, name.as_ptr().cast(), name.len() as isize, value, size);
        }
        headers
    }
}

fn argument(vtype: c::rd_kafka_vtype_t, set: impl FnOnce(&mut c::rd_kafka_vu_s__bindgen_ty_1)) -> c::rd_kafka_vu_t {
    let mut u = c::rd_kafka_vu_s__bindgen_ty_1 { _pad: [0; 64] };
    set(&mut u);
    c::rd_kafka_vu_t { vtype, u }
}

/// Null stays null; an empty string has an address and no length, which librdkafka keeps apart.
fn memory(bytes: Option<&[u8]>) -> c::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
    let ptr = bytes.map_or(std::ptr::null(), <[u8]>::as_ptr).cast_mut().cast();
    c::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 { ptr, size: bytes.map_or(0, <[u8]>::len) }
}

fn bytes<'a>(ptr: *const c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: called with pointers and lengths of one live message, whose borrow ends with the callback.
    (!ptr.is_null()).then(|| unsafe { std::slice::from_raw_parts(ptr.cast(), len) })
}

fn millis(wait: Duration) -> c_int {
    c_int::try_from(wait.as_millis()).unwrap_or(c_int::MAX)
}
